"""A broker that is away for about as long as the sink's session lasts: the sink joins anew, and nothing is lost."""

import time

from tests.harness import Case, free_port, wait_for


class Outages(Case):
    def test_a_sink_outlives_outages_about_as_long_as_its_session(self):
        address = f"127.0.0.1:{free_port()}"
        config = self.dir / "weir.yaml"
        config.write_text("consumer: {session.timeout.ms: 6s, heartbeat.interval.ms: 2s}\n")
        database = self.dir / "sink" / "logs.db"

        def broker():
            started = self.weir("broker", "--data", self.dir / "broker", "--listen", address,
                                "--set", "group.initial.rebalance.delay.ms=0")
            started.wait_line("ready")
            return started

        def stored():
            return self.rows(database, "select count(*) from logs")[0][0]

        running = broker()
        agent = self.weir("agent", "--bootstrap", address, "--data", self.dir / "agent", "--generate", "500")
        agent.wait_line("ready")
        sink = self.weir("sink", "--bootstrap", address, "--data", self.dir / "sink", "--config", config, "--json")
        sink.wait_line("ready")
        for outage in (5.5, 6.5, 7.5):
            wait_for(lambda: stored() > 0, "something is stored")
            running.kill()
            time.sleep(outage)
            before = stored()
            running = broker()
            wait_for(lambda: not sink.running() or stored() > before, f"the sink goes on after an outage of {outage} s", 30)
            self.assertTrue(sink.running(), sink.tail())
        self.assertEqual(agent.stop(), 0, agent.tail())
        acked = int(" ".join(agent.tail()[1]).split("acked ")[-1].split()[0].replace(",", ""))
        wait_for(lambda: stored() >= acked, "every entry is stored")
        self.assertEqual(stored(), acked)
        self.assertEqual(sink.stop(), 0, sink.tail())
        self.assertEqual(running.stop(), 0, running.tail())
