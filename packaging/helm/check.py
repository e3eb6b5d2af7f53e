"""Check the Helm chart: lint it, render each example, validate the manifests and the settings of the broker.

python packaging/helm/check.py HELM SHARECORE
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import yaml
from cluster import cluster

CHART = Path(__file__).parent / "sharecore"
EXAMPLES = CHART / "examples"
KUBERNETES = ("1.28", "1.33")
# invalid values, and the name that the error has to mention
REFUSED = [
    (["mode=cluster"], "mode"),
    (["mode=tier"], "tier.upstream is missing"),
    (["brokers=3"], "brokers"),
    (["tier.replicas=0"], "replicas"),
    (["sasl.mechanisms={PLAIN}"], "tls.secret has to be set"),
    (["sasl.mechanisms={KERBEROS}"], "mechanisms"),
    (["mode=none", "scaler.enabled=true"], "scaler.bootstrapServer is missing"),
    (["listener.port=70000"], "port"),
    (["networkPolicy.enabled=perhaps"], "enabled"),
    (["broker.home.url=file:///mnt"], "url"),
    (["broker.home.standby=2"], "standby"),
    (["broker.home.cacheBytes=1000"], "cacheBytes"),
]
URL = "broker.home.url=s3://backups/queue"
ALONE = [URL, "broker.home.standby=false"]
COPIED = ["config.sharecore\\.bucket\\.url=s3://backups/queue"]
# installed values, the state of the pods, values of the upgrade, and the error; none if the upgrade is safe
UPGRADES = [
    (None, "", [URL], None),
    ([], "ready", [URL], "Upgrade with broker.home.standby=false"),
    ([], "ready", ALONE, None),
    (COPIED, "ready", ALONE, "Name an empty prefix"),
    (["broker.home.url=s3://backups/other"], "ready", [URL], "Upgrade with broker.home.standby=false"),
    (ALONE, "starting", [URL], "sharecore-0 is not ready"),
    (ALONE, "outdated", [URL], "sharecore-0 is not ready"),
    (ALONE, "plain", [URL], "Upgrade with broker.home.standby=false"),
    (ALONE, "ready", [URL], None),
    ([URL], "starting", [URL], None),
]


def render(helm: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    version = f"--kube-version={KUBERNETES[0]}"
    command = [helm, "template", "sharecore", str(CHART), "--namespace", "jobs", version, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def sets(settings: list[str]) -> list[str]:
    return [part for each in settings for part in ("--set", each)]


def installed(helm: str, settings: list[str], state: str) -> list[dict[str, Any]]:
    """Return what Kubernetes holds after an installation.

    Args:
        settings: values of the release.
        state: ready, starting, outdated (the update of the pods is not done), or plain (it failed).
    """
    objects = [each for each in yaml.safe_load_all(render(helm, *sets(settings)).stdout) if each]
    [pods] = [each for each in objects if each["kind"] == "StatefulSet"]
    if state == "plain":
        [pods["spec"]] = [
            each["spec"] for each in installed(helm, [], "ready") if each["kind"] == "StatefulSet"
        ]
    pods["metadata"]["generation"] = 2
    pods["status"] = {
        "observedGeneration": 1 if state == "outdated" else 2,
        "currentRevision": "a",
        "updateRevision": "a",
        "readyReplicas": 0 if state == "starting" else pods["spec"]["replicas"],
    }
    return objects


def check_upgrades(helm: str) -> None:
    """Check that no upgrade starts a standby that could claim the bucket before the running broker."""
    for before, state, settings, error in UPGRADES:
        objects = [] if before is None else installed(helm, before, state)
        with cluster(KUBERNETES[0], objects) as address:
            server = ["--dry-run=server", f"--kube-apiserver={address}"]
            rendered = render(helm, *server, *sets(settings))
        case = f"{before} ({state}) to {settings}: {rendered.stderr}"
        assert (rendered.returncode == 0) == (error is None), case
        assert (error or "") in rendered.stderr, case
    print(f"{len(UPGRADES)} upgrades to a home in a bucket were allowed or rejected")


def check_node_ids(manifests: list[dict[str, Any]]) -> None:
    """Check that no pod of a home has the node id of a broker without one, which is 1."""
    [pods] = [each for each in manifests if each["kind"] == "StatefulSet"]
    [container] = pods["spec"]["template"]["spec"]["containers"]
    [node_id] = [each["value"] for each in container["env"] if each["name"] == "SHARECORE_NODE_ID"]
    assert node_id == "10$(POD_INDEX)", node_id


def check_settings(sharecore: str, manifests: list[dict[str, Any]]) -> None:
    """Check server.properties of the ConfigMap, with the environment of the pod."""
    [pods] = [each for each in manifests if each["kind"] == "StatefulSet"]
    [container] = pods["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    [config] = [each for each in manifests if each["kind"] == "ConfigMap"]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "server.properties"
        file.write_text(config["data"]["server.properties"])
        environment = {
            name: value.replace("$(POD_NAME)", "sharecore-0").replace("$(POD_INDEX)", "0")
            for name, value in environment.items()
        }
        subprocess.run([sharecore, "config", "check", str(file)], env=environment, check=True)


def main(helm: str, sharecore: str) -> None:
    subprocess.run([helm, "lint", "--strict", str(CHART)], check=True)
    values = [[]] + [
        ["-f", str(path)] for path in sorted(EXAMPLES.glob("*.yaml")) if path.stem != "scaledobject"
    ]
    for arguments in values:
        rendered = render(helm, *arguments)
        assert rendered.returncode == 0, rendered.stderr
        manifests = [each for each in yaml.safe_load_all(rendered.stdout) if each]
        assert manifests, arguments
        for manifest in manifests:
            if manifest["apiVersion"].startswith("monitoring.coreos.com"):
                continue  # not Kubernetes's own
            for version in KUBERNETES:
                kubernetes_validate.validate(manifest, version, strict=True)
        if any(each["kind"] == "StatefulSet" for each in manifests):
            check_settings(sharecore, manifests)
            if str(EXAMPLES / "home.yaml") in arguments:
                check_node_ids(manifests)
        kinds = ", ".join(each["kind"] for each in manifests)
        print(f"{arguments[-1] if arguments else 'defaults'}: {kinds}")
    for settings, named in REFUSED:
        refused = render(helm, *sets(settings))
        assert refused.returncode != 0, f"{settings} were not rejected"
        assert named in refused.stderr, f"{settings}: {refused.stderr}"
    check_upgrades(helm)
    print(f"{len(REFUSED)} invalid values were rejected by name")


if __name__ == "__main__":
    main(*sys.argv[1:])
