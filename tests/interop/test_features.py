"""kafka-features, Apache Kafka's tool, unchanged."""

from __future__ import annotations

import re

from tests.harness import java
from tests.interop.conftest import BrokerMaker

FEATURES = f"{java.TOOLS}.FeatureCommand"


def test_share_groups_are_switched_off_and_on(new_broker: BrokerMaker) -> None:
    broker = new_broker()
    broker.start()

    def features(*arguments: str) -> str:
        return java.run(FEATURES, "--bootstrap-server", broker.bootstrap, *arguments)

    def level() -> str:
        found = re.search(r"share\.version.*FinalizedVersionLevel: (\d)", features("describe"))
        assert found is not None
        return found[1]

    assert "can be downgraded" in features("downgrade", "--feature", "share.version=0", "--dry-run")
    assert level() != "0"
    assert features("downgrade", "--feature", "share.version=0") == "share.version was downgraded to 0.\n"
    assert level() == "0"
    assert features("upgrade", "--feature", "share.version=1") == "share.version was upgraded to 1.\n"
