"""`python -m benchmarks.peers`."""

from benchmarks.frame import command
from benchmarks.peers import contest

if __name__ == "__main__":
    command(contest.__doc__, "peers", contest.run, contest.markdown)
