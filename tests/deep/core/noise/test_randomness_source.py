"""Nothing but the sampler draws"""

from __future__ import annotations

import ast

from tests.core.noise.test_randomness_source import ROOT, SAMPLER, sources_of_randomness

ALLOWED = SAMPLER / "entropy.py"


SALTS = {  # no noise, and no noise may use them
    "core/ledger/chain/hash_chain.py": {"secrets"},  # the ledger's salt and nonce
    "service/preparing/prepare.py": {"secrets"},  # the name of a copy, and which rows are kept
    "faces/server/wire/scram.py": {"secrets"},  # salts of passwords, and numbers used once
    "faces/server/front/listen.py": {"secrets"},  # the keys with which clients cancel their queries
    "faces/server/web/sessions.py": {"secrets"},  # the tokens of sessions and forms
    "faces/server/web/oidc.py": {"secrets"},  # the key and the marks of a try to sign in by a provider
    "faces/server/web/entrance.py": {"secrets"},  # the key of the marks by which pairs of name and password are known
}


def test_no_other_module_draws() -> None:
    files = sorted(ROOT.rglob("*.py"))
    assert ALLOWED in files and len(files) > 10
    found = {f.relative_to(ROOT).as_posix(): set(sources_of_randomness(ast.parse(f.read_text("utf-8")))) for f in files}
    uses = {name: kinds - SALTS.get(name, set()) for name, kinds in found.items()}
    assert {name: kinds for name, kinds in uses.items() if kinds} == {"core/noise/sampler/entropy.py": {"urandom"}}
