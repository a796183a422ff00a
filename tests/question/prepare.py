"""Makes what the question's programs need: the topic (one partition, LogAppendTime) and a file of tweet-like lines.

    prepare.py BOOTSTRAP FILE COUNT
"""

import json
import random
import sys

from confluent_kafka.admin import AdminClient, NewTopic

bootstrap, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

topic = NewTopic("twitter-stream", num_partitions=1, replication_factor=1, config={"message.timestamp.type": "LogAppendTime"})
admin = AdminClient({"bootstrap.servers": bootstrap})
admin.create_topics([topic])["twitter-stream"].result(30)

dice = random.Random(1)
words = "morning coffee train late again match tonight great weather rain city people music album photo sunset work".split()
with open(path, "w", encoding="utf-8") as out:
    for number in range(count):
        text = " ".join(dice.choice(words) for _ in range(70 + number % 25))
        tweet = {"id": 1383000000000000000 + number, "text": text, "lang": "en", "retweet_count": dice.randrange(1000),
                 "user": {"id": dice.randrange(10**9), "name": dice.choice(words), "followers_count": dice.randrange(10**5)}}
        out.write(json.dumps(tweet) + "\n")
