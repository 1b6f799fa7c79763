"""Where the consoles listen, and what is said where they cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsql.diagnostics.errors import Rejected
from dpsql.faces.cli.commands.servers import serve
from dpsql.faces.server.web.doors import Address, read_address
from tests.support.served import people
from tests.support.served_web import ServedWeb
from tests.support.small_shop import make_shop


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)), ("8080", Address("127.0.0.1", 8080)),
        ("[::1]:1", Address("::1", 1)), (":8080", Address("0.0.0.0", 8080)), ("localhost:0", Address("localhost", 0)),
    ],
)  # fmt: skip
def test_an_address_is_read(text: str, address: Address) -> None:
    assert read_address(text, "--http") == address


@pytest.mark.parametrize("text", ["", "x", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1", "1:²"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(Rejected) as refusal:
        read_address(text, "--http")
    assert refusal.value.diagnostics[0].code == "DP903" and "--http 127.0.0.1:8080" in str(refusal.value)


@pytest.mark.parametrize(("http", "custodian"), [("0.0.0.0:8080", None), (None, ":8081"), ("192.0.2.1:8080", None)])
def test_other_machines_need_tls(tmp_path: Path, http: str | None, custodian: str | None) -> None:
    shop = make_shop(tmp_path / "shop")
    users = f"users: {{ana: {{secret: '{people().secret_of('ana')}'}}}}"
    shop.policy.with_name("users.yaml").write_text(users)
    with pytest.raises(Rejected, match="need TLS"):
        serve.run([str(shop.policy)], None, "127.0.0.1", 0, None, None, None, None, (), None, http, custodian, "none")


def test_without_its_extra_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    with pytest.raises(Rejected, match=r"pip install 'dpsql\[server\]'"):
        serve._consoles("127.0.0.1:0", None, None)
    assert serve._consoles(None, None, None) is None


def test_a_port_that_is_taken(web: ServedWeb) -> None:
    site = web.web._console
    with pytest.raises(Rejected, match="cannot be listened at"):
        web.server.do(lambda: web.web._listen(site, Address("127.0.0.1", web.port), "--http"))
