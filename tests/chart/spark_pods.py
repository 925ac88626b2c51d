"""Has Spark itself make the driver's pod, without a cluster: what it keeps of a pod template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from pyspark.java_gateway import launch_gateway

CONTAINER = "spark-kubernetes-driver"
"""Kubeflow's operator calls it so, and tells Spark (2.4.0, ``driverPodTemplateOption``)."""
NOWHERE = "https://127.0.0.1:1"


def driver_resources(template: dict[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """What Spark would make for a driver: its pod, with the container in it, and more, by kind.

    Args:
        template: A pod template, as the operator writes it into a file.
        folder: Where that file may be.
    """
    file = folder / "template.yaml"
    file.write_text(yaml.safe_dump(template))
    gateway: Any = launch_gateway()
    try:
        return _made(gateway, file)
    finally:
        gateway.shutdown()
        # Java ends when its input does.
        gateway.proc.stdin.close()
        gateway.proc.wait()


def _made(gateway: Any, file: Path) -> dict[str, dict[str, Any]]:
    jvm = gateway.jvm
    spark, client = jvm.org.apache.spark, jvm.io.fabric8.kubernetes.client
    conf = spark.SparkConf(False)
    for key, value in {
        "spark.app.name": "sink",
        "spark.master": f"k8s://{NOWHERE}",
        "spark.kubernetes.container.image": "shardmerge-sink",
        "spark.kubernetes.driver.podTemplateFile": str(file),
        "spark.kubernetes.driver.podTemplateContainerName": CONTAINER,
    }.items():
        conf.set(key, value)
    submit = spark.deploy.k8s.submit
    of = spark.deploy.k8s.KubernetesDriverConf(
        conf,
        "app",
        submit.PythonMainAppResource("local:///opt/shardmerge/sink.py"),
        "org.apache.spark.deploy.PythonRunner",
        gateway.new_array(jvm.java.lang.String, 0),
        getattr(getattr(jvm.scala, "None$"), "MODULE$"),
        spark.util.SystemClock(),
    )
    config = client.ConfigBuilder(client.Config.empty()).withMasterUrl(NOWHERE).build()
    # It reads the file; it asks no server.
    reader = client.KubernetesClientBuilder().withConfig(config).build()
    made = submit.KubernetesDriverBuilder().buildFromFeatures(of, reader)
    pod, container = (_plain(client, each) for each in (made.pod().pod(), made.pod().container()))
    pod["spec"]["containers"] = [*pod["spec"].get("containers", []), container]
    others = made.driverKubernetesResources()
    each_one = [_plain(client, others.apply(at)) for at in range(others.size())]
    return {"Pod": pod, **{each["kind"]: each for each in each_one}}


def _plain(client: Any, of: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(client.utils.Serialization.asJson(of))
    return found
