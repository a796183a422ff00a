"""An idle broker: resident memory and time to ready. Ten starts, the median is held to the bound."""

import re
import shutil
import statistics
import tempfile
import time

from bench.figures import Figures, rss_mib
from tests.harness import WEIR, Process, free_port

figures = Figures()
ready, wall, memory = [], [], []
for _ in range(10):
    data = tempfile.mkdtemp(prefix="weir-bench-")
    before = time.monotonic()
    broker = Process([WEIR, "broker", "--data", data, "--listen", f"127.0.0.1:{free_port()}"])
    line = broker.wait_line("ready", 10)
    wall.append((time.monotonic() - before) * 1000)
    ready.append(float(re.search(r"([\d.]+) ?ms", line).group(1)))
    time.sleep(1)  # idle
    memory.append(rss_mib(broker.pid)[0])
    broker.stop()
    shutil.rmtree(data)
figures.show("ready, as the broker says", statistics.median(ready), "ms", high=50)
figures.show("ready, seen from outside (50 ms polling)", statistics.median(wall), "ms")
figures.show("resident memory after 1 s idle", statistics.median(memory), "MiB", high=20)
figures.finish()
