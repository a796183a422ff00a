"""Prints figures beside their bounds; the exit code says whether all were met."""

import sys


class Figures:
    def __init__(self):
        self.missed = 0

    def show(self, name, value, unit, low=None, high=None):
        """One line; `low` and `high` are the bounds, either may be missing."""
        met = (low is None or value >= low) and (high is None or value <= high)
        bound = "" if low is None and high is None else f"  bound {'' if low is None else f'{low:g} <= '}x{'' if high is None else f' <= {high:g}'}"
        print(f"{name:44} {value:12.3f} {unit:6}{bound}{'' if met else '  MISSED'}")
        self.missed += not met

    def finish(self):
        sys.exit(1 if self.missed else 0)


def rss_mib(pid):
    """Resident memory of a process, and its peak."""
    with open(f"/proc/{pid}/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    return int(fields["VmRSS"].split()[0]) / 1024, int(fields["VmHWM"].split()[0]) / 1024
