#!/bin/sh
# Runs the question's two programs against a broker that has no topic twitter-stream yet, and lets `weir explain` read what they
# print. Asserts what came of it, not how long it took.
#
#   tests/question/run.sh BOOTSTRAP
#
# PYTHON: a Python with confluent-kafka. WEIR_BINARY: the program.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python=${PYTHON:-$root/build/peers/python/bin/python}
weir=${WEIR_BINARY:-$root/build/release/weir}
bootstrap=${1:?usage: $0 BOOTSTRAP}
count=14485
dir=$(mktemp -d)
consumer=
trap '[ -z "$consumer" ] || kill "$consumer" 2>/dev/null || true; rm -rf "$dir"' EXIT

"$python" "$here/prepare.py" "$bootstrap" "$dir/tweets" $count

touch "$dir/consumer.err"
"$python" "$here/consumer.py" "$bootstrap" $count 77 >"$dir/consumer" 2>"$dir/consumer.err" &
consumer=$!
tries=0
until grep -q "assigned 1" "$dir/consumer.err"; do
  tries=$((tries + 1))
  if [ $tries -gt 600 ] || ! kill -0 "$consumer" 2>/dev/null; then
    echo "the consumer was not given its partition:" >&2
    cat "$dir/consumer.err" >&2
    exit 1
  fi
  sleep 0.1
done
"$python" "$here/producer.py" "$bootstrap" "$dir/tweets" >"$dir/producer"
wait "$consumer" || { echo "the consumer did not get every message" >&2; tail -n 3 "$dir/consumer" "$dir/consumer.err" >&2; exit 1; }
consumer=

# As somebody would paste it: prose and program text around, both outputs one after the other.
{
  echo "The latency grows and the queue fills. Why? The consumer:"
  sed 's/^/    /' "$here/consumer.py"
  cat "$dir/consumer"
  echo "And the producer:"
  cat "$dir/producer"
} >"$dir/pasted"
"$weir" explain --json - <"$dir/pasted" >"$dir/verdict"
cat "$dir/verdict"
"$weir" explain "$dir/pasted" | grep -q "^Bottleneck: consumer"
printf 'nothing here\n' | "$weir" explain - 2>/dev/null && { echo "explain took nonsense" >&2; exit 1; }

"$python" - "$dir/verdict" $count <<'PYTHON'
import json
import sys

lines = open(sys.argv[1], encoding="utf-8").read().splitlines()
assert len(lines) == 1, lines
verdict = json.loads(lines[0])
assert list(verdict) == ["samples", "arrival_per_s", "service_per_s", "slope_ms_per_1000", "queue_growth_per_record", "bottleneck",
                         "confidence", "advice"], list(verdict)
assert verdict["samples"] == int(sys.argv[2]), verdict["samples"]
assert verdict["bottleneck"] == "consumer", verdict["bottleneck"]
assert verdict["arrival_per_s"] > verdict["service_per_s"] > 0
assert verdict["service_per_s"] < 1e6 / 77
assert verdict["slope_ms_per_1000"] > 0
assert -1 <= verdict["queue_growth_per_record"] <= 1
assert 0.5 < verdict["confidence"] <= 1
assert "printing" in verdict["advice"][0] and "window" in verdict["advice"][1], verdict["advice"][:2]
print("explain read the question's programs: consumer")
PYTHON
