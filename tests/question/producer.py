"""The question's producer: sends the lines of a file as fast as it can and prints the length of its queue before each.

    producer.py BOOTSTRAP FILE [STEPS]

Unlike the question's it flushes at the end: without that, what is still queued is lost.
"""

import sys

from confluent_kafka import Producer

TOPIC = "twitter-stream"

bootstrap, path = sys.argv[1], sys.argv[2]
steps = int(sys.argv[3]) if len(sys.argv) > 3 else 1

producer = Producer({"bootstrap.servers": bootstrap})
with open(path, encoding="utf-8") as dataset:
    for step in range(steps):
        print(f"Executing data generation step {step}...")
        dataset.seek(0)
        for tweet in dataset:
            try:
                print(f"IN QUEUE: {len(producer)}")
                producer.produce(TOPIC, value=tweet)
                producer.poll(0)
            except BufferError:
                print(f"[INFO] Local producer queue is full ({len(producer)} messages awaiting delivery): flushing, then once more\n")
                producer.flush()
                producer.produce(TOPIC, value=tweet)
                producer.poll(0)

left = producer.flush(60)
print("Data generation done!")
sys.exit(1 if left else 0)
