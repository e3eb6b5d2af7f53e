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
]


def render(helm: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    version = f"--kube-version={KUBERNETES[0]}"
    command = [helm, "template", "sharecore", str(CHART), "--namespace", "jobs", version, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


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
            name: value.replace("$(POD_NAME)", "sharecore-0") for name, value in environment.items()
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
        kinds = ", ".join(each["kind"] for each in manifests)
        print(f"{arguments[-1] if arguments else 'defaults'}: {kinds}")
    for settings, named in REFUSED:
        refused = render(helm, *(part for each in settings for part in ("--set", each)))
        assert refused.returncode != 0, f"{settings} were not rejected"
        assert named in refused.stderr, f"{settings}: {refused.stderr}"
    print(f"{len(REFUSED)} invalid values were rejected by name")


if __name__ == "__main__":
    main(*sys.argv[1:])
