#!/usr/bin/env python3
"""Compares the field tables of src/protocol, field by field, with the message definitions inside Kafka's jars.

    check_tables.py DUMP_PROGRAM JAR_DIRECTORY

Prints each difference. Exit code 0: none, 1: some, 2: the jars are not there.
"""
import glob
import json
import os
import re
import subprocess
import sys
import zipfile

JARS = ("kafka-clients", "kafka-group-coordinator", "kafka-transaction-coordinator", "kafka-storage")
OPEN_END = None


def definitions(directory):
    """Every message definition in the jars, by its name."""
    found = {}
    for jar in JARS:
        for path in glob.glob(os.path.join(directory, jar + "-[0-9]*.jar")):
            with zipfile.ZipFile(path) as archive:
                for name in archive.namelist():
                    if name.endswith(".json") and "message/" in name:
                        text = re.sub(r"(?m)^\s*//.*$|(?<=[,\[\]{}])\s*//.*$", "", archive.read(name).decode())
                        definition = json.loads(text)
                        found[definition["name"]] = definition
    return found


def versions(text):
    """[first, last] of "3+", "1-4", "2" or None of "none"; an open end is None."""
    if not text or text == "none":
        return None
    if text.endswith("+"):
        return [int(text[:-1]), OPEN_END]
    first, _, last = text.partition("-")
    return [int(first), int(last or first)]


def snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def default(field):
    """The default as the dump spells it. A nullable field without one is null in ours: an empty value is never needed."""
    kind = field["type"]
    value = field.get("default")
    if isinstance(value, bool):
        return str(value).lower()
    if value is None and field.get("nullableVersions"):
        return "null"
    if value is None:
        return {"bool": "false"}.get(kind, "0" if re.fullmatch(r"u?int\d+|float64", kind) else "")
    if re.fullmatch(r"u?int\d+", kind):
        return str(int(str(value), 0))
    return value


class Check:
    def __init__(self):
        self.differences = []
        self.fields = 0

    def same(self, where, what, ours, kafkas):
        if ours != kafkas:
            self.differences.append(f"{where}: {what} is {ours!r}, Kafka has {kafkas!r}")

    def compare_fields(self, where, ours, kafkas, structs):
        self.same(where, "list of fields", [f["name"] for f in ours], [snake(f["name"]) for f in kafkas])
        for our, kafka in zip(ours, kafkas):
            self.fields += 1
            place = f"{where}.{our['name']}"
            self.same(place, "type", our["type"], kafka["type"])
            self.same(place, "versions", our["versions"], versions(kafka["versions"]))
            self.same(place, "nullable versions", our["nullable"], versions(kafka.get("nullableVersions")))
            self.same(place, "tag", our["tag"], kafka.get("tag", -1))
            self.same(place, "never compact", our["never_compact"], kafka.get("flexibleVersions") == "none")
            if "taggedVersions" in kafka:
                self.same(place, "tagged versions", our["versions"], versions(kafka["taggedVersions"]))
            nested = kafka.get("fields") or structs.get(kafka["type"].removeprefix("[]"))
            if not nested:
                self.same(place, "default", our["default"], default(kafka))
            self.compare_fields(place, our["fields"], nested or [], structs)

    def compare(self, table, definition):
        name = table["name"]
        self.same(name, "versions", table["versions"], versions(definition["validVersions"]))
        flexible = versions(definition["flexibleVersions"])
        self.same(name, "first flexible version", table["flexible"], flexible and flexible[0])
        if definition["type"] in ("request", "response"):
            self.same(name, "API key", table["key"], definition["apiKey"])
        structs = {s["name"]: s["fields"] for s in definition.get("commonStructs", [])}
        self.compare_fields(name, table["fields"], definition["fields"], structs)


def main():
    program, directory = sys.argv[1:3]
    found = definitions(directory)
    if not found:
        print(f"no Kafka jars in {directory}: tables not compared")
        return 2
    check = Check()
    tables = [json.loads(line) for line in subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()]
    for table in tables:
        if table["name"] in found:
            check.compare(table, found[table["name"]])
        else:
            check.differences.append(f"{table['name']}: Kafka has no such message")
    for difference in check.differences:
        print(difference)
    print(f"{len(tables)} messages, {check.fields} fields compared, {len(check.differences)} differences")
    return 1 if check.differences else 0


if __name__ == "__main__":
    sys.exit(main())
