"""Run by test_python_client with the Python that has confluent-kafka: produces, reads back, prints one JSON line."""

import json
import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

address, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

admin = AdminClient({"bootstrap.servers": address})
admin.create_topics([NewTopic(topic, num_partitions=3, replication_factor=1)])[topic].result(30)

failed = []
producer = Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 5, "compression.type": "zstd"})
for i in range(count):
    while True:
        try:
            producer.produce(topic, key=str(i % 50), value=f"value {i}", headers=[("n", str(i))],
                             on_delivery=lambda error, message: failed.append(str(error)) if error else None)
            break
        except BufferError:
            producer.poll(0.1)
    producer.poll(0)
left = producer.flush(60)

consumer = Consumer({"bootstrap.servers": address, "group.id": topic + "-readers", "auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe([topic])
seen = []
idle = 0
while len(seen) < count and idle < 60:
    messages = consumer.consume(500, 1.0)
    idle = 0 if messages else idle + 1
    for message in messages:
        if message.error():
            failed.append(str(message.error()))
        else:
            seen.append(int(dict(message.headers())["n"]))
consumer.commit(asynchronous=False)
committed = sum(max(0, p.offset) for p in consumer.committed([TopicPartition(topic, p) for p in range(3)], 30))
group = admin.describe_consumer_groups([topic + "-readers"])[topic + "-readers"].result(30)
consumer.close()
print(json.dumps({"left": left, "failed": failed, "unique": len(set(seen)), "seen": len(seen), "committed": committed,
                  "state": group.state.name, "members": len(group.members)}))
