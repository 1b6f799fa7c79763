"""`dpsql policy init` at a terminal: it asks for each decision, says what each choice means, and writes a policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.policy.load import load_policy
from tests.support.terminal import Terminal

pytestmark = pytest.mark.processes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shop = tmp_path / "shop"
    shop.mkdir()
    orders = "".join(f"{i % 50},{i},{i % 7}\n" for i in range(300))
    (shop / "orders.csv").write_text(f"customer_id,order_id,product_id\n{orders}", encoding="utf-8")
    products = "".join(f"{i},thing\n" for i in range(7))
    (shop / "products.csv").write_text(f"product_id,kind\n{products}", encoding="utf-8")
    return tmp_path


def test_each_decision_is_asked_with_what_it_means(folder: Path) -> None:
    with Terminal(["policy", "init", "shop", "-o", "policy.yaml"], folder) as terminal:
        terminal.wait("1 of 3. orders: who is protected?")
        terminal.wait("1  each customer_id: all rows of one together")
        terminal.wait("nobody: everybody may see every row")
        terminal.type("?\r")
        terminal.wait("customer_id bigint, order_id bigint, product_id bigint\nYour choice")
        terminal.type("8\r")
        terminal.wait("a number from 1 to 5, or q")
        terminal.type("\r")
        terminal.wait("2 of 3. products: who is protected?")
        terminal.type("3\r")
        terminal.wait("tell about one customer?")
        terminal.wait("that was 50 in 100 is 89 in 100 afterwards, at most; enough for 10 counts of them, each ± 30")
        terminal.type("3\r")
        terminal.wait("wrote policy.yaml")
    policy = load_policy(folder / "policy.yaml")
    assert not policy.draft and not policy.warnings
    assert policy.tables["orders"].unit == "customer" and policy.tables["products"].public
    assert policy.budgets.total is not None and policy.budgets.total.epsilon == 3


@pytest.mark.parametrize("said", ["q\r", "\x04"])
def test_what_is_left_open_is_open_in_the_draft(said: str, folder: Path) -> None:
    with Terminal(["policy", "init", "shop", "-o", "policy.yaml"], folder) as terminal:
        terminal.wait("1 of 3")
        terminal.type("\r")
        terminal.wait("2 of 3")
        terminal.type(said)
        terminal.wait("wrote policy.yaml")
    text = (folder / "policy.yaml").read_text(encoding="utf-8")
    assert "draft: true" in text and text.count("DECIDE") == 2


def test_nothing_is_written_after_ctrl_c(folder: Path) -> None:
    with Terminal(["policy", "init", "shop", "-o", "policy.yaml"], folder) as terminal:
        terminal.wait("1 of 3")
        terminal.type("\x03")
        terminal.child.wait()
    assert terminal.child.exitstatus == 130 and not (folder / "policy.yaml").exists()


def test_a_file_that_is_there_is_told_before_anything_is_asked(folder: Path) -> None:
    (folder / "policy.yaml").write_text("mine", encoding="utf-8")
    with Terminal(["policy", "init", "shop", "-o", "policy.yaml"], folder) as terminal:
        terminal.wait("exists already")
        assert "who is protected" not in terminal.screen
