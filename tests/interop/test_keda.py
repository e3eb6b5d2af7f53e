"""`sharecore keda` with a gRPC client, on sharecore and on Apache Kafka."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from confluent_kafka import AcknowledgeType
from tests.harness.broker import SHARECORE, Broker, free_port
from tests.harness.clients import configure_group, produce, settle, share_consumer, take
from tests.interop.conftest import KIND

from sharecore.admin import BlockingAdmin
from sharecore.keda import messages


@contextmanager
def scaler(bootstrap: str, *arguments: str) -> Iterator[str]:
    program = [sys.executable, "-m", "sharecore", "keda"]
    command = [*program, "-b", bootstrap, "--listen", "127.0.0.1:0", "--interval", "0.5", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().rpartition(" ")[2].strip()
    finally:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


class Keda:
    """The calls that KEDA makes."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def reference(self, **metadata: str) -> Any:
        return messages.ScaledObjectRef(name="workers", namespace="jobs", scalerMetadata=metadata)

    def _call(self, name: str, request: Any, answer: Any) -> Any:
        path = f"/{messages.SERVICE}/{name}"
        call = self._channel.unary_unary(path, type(request).SerializeToString, answer.FromString)
        return call(request, timeout=60)

    def is_active(self, **metadata: str) -> bool:
        answer = self._call("IsActive", self.reference(**metadata), messages.IsActiveResponse)
        return bool(answer.result)

    def target(self, **metadata: str) -> tuple[str, int, float]:
        answer = self._call("GetMetricSpec", self.reference(**metadata), messages.GetMetricSpecResponse)
        [spec] = answer.metricSpecs
        return spec.metricName, spec.targetSize, spec.targetSizeFloat

    def records(self, **metadata: str) -> tuple[int, float]:
        request = messages.GetMetricsRequest(
            scaledObjectRef=self.reference(**metadata), metricName="s0-sharecore-lag"
        )
        [value] = self._call("GetMetrics", request, messages.GetMetricsResponse).metricValues
        assert value.metricName == "s0-sharecore-lag"
        return value.metricValue, value.metricValueFloat

    def changes(self, **metadata: str) -> Any:
        path = f"/{messages.SERVICE}/StreamIsActive"
        reference, answer = self.reference(**metadata), messages.IsActiveResponse
        call = self._channel.unary_stream(path, type(reference).SerializeToString, answer.FromString)
        return call(reference, timeout=120)


def test_the_four_calls_of_keda(broker: Broker, topic: str, group: str) -> None:
    produce(broker.bootstrap, topic, [b"x"] * 6)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 6)
    with scaler(broker.bootstrap) as address, grpc.insecure_channel(address) as channel:
        keda = Keda(channel)
        assert keda.target(group=group) == (f"sharecore-lag-{group}", 10, 10.0)
        assert keda.target(group=group, lagThreshold="2.5") == (f"sharecore-lag-{group}", 2, 2.5)
        changes = keda.changes(group=group, topics=topic)
        assert not next(changes).result
        produce(broker.bootstrap, topic, [b"y"] * 4)
        # Apache Kafka reports the lag of a group without members only once its state is written
        with share_consumer(broker.bootstrap, group, [topic]) as consumer:
            assert take(consumer)
            # acquired records count
            assert next(changes).result
            assert keda.records(group=group) == (4, 4.0)
            assert keda.records(group=group, topics=topic) == (4, 4.0)
            assert keda.is_active(group=group)
            assert not keda.is_active(group=group, activationLagThreshold="4")
        with share_consumer(broker.bootstrap, group, [topic]) as consumer:
            settle(consumer, 4)
        assert not next(changes).result
        changes.cancel()
        # a group that does not exist yet gets its first worker
        assert keda.records(group=f"{group}-later", lagThreshold="7") == (7, 7.0)
        with pytest.raises(grpc.RpcError) as refused:
            keda.is_active(topics=topic)
        assert refused.value.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert refused.value.details() == "metadata.group is missing: the name of the share group"


def test_an_unreachable_cluster_is_an_error(group: str) -> None:
    with (
        scaler(f"127.0.0.1:{free_port()}", "--timeout", "1") as address,
        grpc.insecure_channel(address) as channel,
        pytest.raises(grpc.RpcError) as refused,
    ):
        Keda(channel).records(group=group)
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE


def test_it_serves_with_tls(broker: Broker, group: str, tmp_path: Path) -> None:
    subprocess.run([SHARECORE, "certs", str(tmp_path), "--host", "localhost"], check=True)
    with scaler(broker.bootstrap, "--tls-certificate", str(tmp_path / "broker.pem")) as address:
        trusted = grpc.ssl_channel_credentials((tmp_path / "ca.pem").read_bytes())
        port = address.rpartition(":")[2]
        options = [("grpc.ssl_target_name_override", "localhost")]
        with grpc.secure_channel(f"127.0.0.1:{port}", trusted, options) as channel:
            assert Keda(channel).is_active(group=group)


@pytest.mark.skipif(KIND == "apache", reason="Apache Kafka has no back-off of a group")
def test_records_that_wait_need_no_worker(broker: Broker, topic: str, group: str) -> None:
    configure_group(
        broker.bootstrap, group, share_auto_offset_reset="earliest", share_retry_backoff_ms="300000"
    )
    produce(broker.bootstrap, topic, [b"x"] * 3)
    with share_consumer(broker.bootstrap, group, [topic]) as consumer:
        settle(consumer, 3, lambda _: AcknowledgeType.RELEASE)
    with scaler(broker.bootstrap) as address, grpc.insecure_channel(address) as channel:
        keda = Keda(channel)
        assert keda.records(group=group) == (0, 0.0)
        changes = keda.changes(group=group)
        assert not next(changes).result
        produce(broker.bootstrap, topic, [b"y"])
        assert next(changes).result
        assert keda.records(group=group) == (1, 1.0)
        with BlockingAdmin(bootstrap_servers=broker.bootstrap) as admin:
            admin.pause(group)
        assert not next(changes).result
        changes.cancel()
