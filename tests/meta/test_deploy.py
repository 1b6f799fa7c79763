"""What deploy/ names agrees with itself, with the command line, and with the page that tells how to install it."""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from dpsql.faces.cli.main import main

PAGE = "docs/howto/run-a-server.md"


def unit(root: Path, name: str) -> dict[str, str]:
    """The settings of a unit; what is said more than once is joined."""
    text = (root / "deploy" / "systemd" / f"{name}.service").read_text(encoding="utf-8").replace("\\\n", " ")
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, is_setting, value = line.partition("=")
        if is_setting and not line.startswith("#"):
            found[key] = f"{found[key]} {value}" if key in found else value
    return found


def services(root: Path) -> dict[str, Any]:
    text = (root / "deploy" / "docker" / "compose.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = YAML(typ="safe").load(text)["services"]
    return found


def commands(root: Path) -> dict[str, list[str]]:
    units = {name: shlex.split(unit(root, name)["ExecStart"]) for name in ("dpsql", "dpsql-workers")}
    return units | {name: [str(word) for word in service["command"]] for name, service in services(root).items()}


def after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1]


def test_front_and_workers_meet_at_one_socket_over_one_policy(root: Path) -> None:
    found = commands(root)
    for front, workers in (("dpsql", "dpsql-workers"), ("front", "workers")):
        *_, socket, policy = found[workers]
        assert after(found[front], "--workers") == socket == "/run/dpsql/workers.sock"
        assert (policy, found[front][2]) == ("/var/lib/dpsql/policy.yaml", "/etc/dpsql/policy.yaml")
    assert "ln -s /etc/dpsql/policy.yaml /var/lib/dpsql/" in (root / PAGE).read_text(encoding="utf-8")
    assert "./etc/policy.yaml:/var/lib/dpsql/policy.yaml:ro" in services(root)["workers"]["volumes"]


def test_what_is_started_is_there(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--help-all"]) == 0
    known = capsys.readouterr().out
    for words in commands(root).values():
        if "-m" in words:
            assert importlib.util.find_spec(after(words, "-m")) is not None
        else:
            assert {word for word in words if word.startswith("--")} <= set(re.findall(r"--[a-z-]+", known))


def test_users_and_groups_are_those_that_are_made(root: Path) -> None:
    text = (root / "deploy" / "systemd" / "dpsql.sysusers.conf").read_text(encoding="utf-8")
    made = {kind: re.findall(rf"^{kind} (\S+)", text, re.MULTILINE) for kind in "gu"}
    workers, front = unit(root, "dpsql-workers"), unit(root, "dpsql")
    assert ([workers["User"]], {workers["Group"], *front["SupplementaryGroups"].split()}) == (made["u"], set(made["g"]))
    (told,) = re.findall(r'^u .*"(.*)"', text, re.MULTILINE)
    assert ":" not in told  # /etc/passwd has no place for one: systemd-sysusers makes no user then


def test_numbers_of_users_are_those_of_the_image(root: Path) -> None:
    text = (root / "deploy" / "docker" / "Dockerfile").read_text(encoding="utf-8")
    numbers = {name: number for number, name in re.findall(r"--uid (\d+) .*?(\w+) \\$", text, re.MULTILINE)}
    found = {name: service["user"] for name, service in services(root).items()}
    assert found == {
        "workers": f"{numbers['data']}:{numbers['front']}", "front": f"{numbers['front']}:{numbers['front']}"
    }  # fmt: skip


def test_workers_have_no_network_and_the_front_no_data(root: Path) -> None:
    workers, front = unit(root, "dpsql-workers"), unit(root, "dpsql")
    assert (workers["PrivateNetwork"], workers["RestrictAddressFamilies"]) == ("yes", "AF_UNIX")
    assert services(root)["workers"]["network_mode"] == "none"
    assert front["InaccessiblePaths"] == "-/srv/dpsql /var/lib/dpsql"
    assert [volume for volume in services(root)["front"]["volumes"] if "/srv/" in volume or "/var/lib/" in volume] == []


def test_the_page_copies_files_that_are_there(root: Path) -> None:
    named = set(re.findall(r"deploy/[\w./*-]*\w", (root / PAGE).read_text(encoding="utf-8")))
    assert {"deploy/systemd/dpsql.sysusers.conf", "deploy/docker/compose.yaml"} <= named
    assert [name for name in named if not list(root.glob(name))] == []
