"""`weir up` offered five times what its store takes: memory, lag, latency of errors, conservation.

    python3 -m bench.overload [SECONDS [SINK_RATE]]
"""

import json
import shutil
import sys
import tempfile
import time

from bench.figures import Figures, rss_mib
from tests.harness import WEIR, Process, free_port

seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 60
sink_rate = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
target = 5.0
data = tempfile.mkdtemp(prefix="weir-bench-")
up = Process([WEIR, "up", "--data", data, "--listen", f"127.0.0.1:{free_port()}", "--http", f"127.0.0.1:{free_port()}", "--json",
              "--generate", str(5 * sink_rate), "--sink-rate", str(sink_rate), "--for", f"{seconds}s"])
peak = 0.0
while up.running():
    try:
        peak = max(peak, rss_mib(up.pid)[1])
    except (OSError, KeyError):
        break
    time.sleep(0.2)
code = up.wait()
r = json.loads(up.out[-1])
print(json.dumps(r))
figures = Figures()
figures.show("exit code", code, "", high=0)
figures.show("peak resident memory", peak, "MiB", high=32 + 64)
figures.show("lag when the inputs stopped", r["lag_seconds"], "s", low=0.8 * target, high=1.2 * target)
figures.show("errors, read to stored, p99", r["error_latency_ms"]["p99"], "ms", high=1000)
where = sum(r[k] for k in ("stored", "duplicates", "dead_lettered", "lag", "agent_in_memory", "spooled"))
where += sum(r["shed"].values()) + sum(r["rejected"].values())
figures.show("records not accounted for", r["read"] - where, "", low=0, high=0)
figures.show("stored per second", r["stored"] / seconds, "1/s")
shutil.rmtree(data)
figures.finish()
