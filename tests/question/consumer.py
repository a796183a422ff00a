"""The question's consumer: prints for each message how long ago the broker appended it.

    consumer.py BOOTSTRAP COUNT [WORK_US]

Ends after COUNT messages, or when none has come for 30 s. WORK_US stands for a slow terminal: that long is spent on each message.
"""

import sys
import time

from confluent_kafka import Consumer, KafkaError

TOPIC = "twitter-stream"
GROUP = "twitter-consumers"

bootstrap, count = sys.argv[1], int(sys.argv[2])
work = float(sys.argv[3]) / 1e6 if len(sys.argv) > 3 else 0.0

consumer = Consumer({
    "bootstrap.servers": bootstrap,
    "group.id": GROUP,
    "client.id": "client-1",
    "enable.auto.commit": True,
    "session.timeout.ms": 6000,
    "default.topic.config": {"auto.offset.reset": "smallest"},
})
consumer.subscribe([TOPIC], on_assign=lambda _, partitions: print("assigned", len(partitions), file=sys.stderr, flush=True))

received = 0
last = time.monotonic()
try:
    while received < count and time.monotonic() - last < 30:
        message = consumer.poll(0.1)
        if message is None:
            continue
        if not message.error():
            latency = time.time() * 1000 - message.timestamp()[1]
            received += 1
            last = time.monotonic()
            print(f"Message {received} received | Timestamp: {message.timestamp()[1]} | Latency: {latency}")
            end = time.perf_counter() + work
            while time.perf_counter() < end:
                pass
        elif message.error().code() == KafkaError._PARTITION_EOF:
            print(f"End of partition reached {message.topic()}/{message.partition()}")
        else:
            print(f"Error occurred: {message.error().str()}")
except KeyboardInterrupt:
    pass
finally:
    consumer.close()
sys.exit(0 if received == count else 1)
