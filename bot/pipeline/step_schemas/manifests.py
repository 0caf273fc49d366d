"""Steps for Helm and Kustomize."""

from __future__ import annotations

from collections.abc import Mapping

from bot.pipeline.schema import JsonSchema, boolean, choice, items, mapping, text
from bot.pipeline.step_schemas.parts import exactly_one, path, texts

MANIFESTS: Mapping[str, JsonSchema] = {
    "helm-update-chart": mapping(
        {
            "path": path("The directory of Chart.yaml."),
            "charts": items(
                mapping(
                    {
                        "repository": text("The dependency's repository.", empty=False),
                        "name": text("The dependency's name.", empty=False),
                        "version": text("Its new version.", empty=False),
                    },
                    required=("repository", "name", "version"),
                ),
                least=1,
            ),
        },
        required=("path",),
    ),
    "helm-template": mapping(
        {
            "path": path("The chart."),
            "outPath": path("A file, or a directory for one file per manifest."),
            "releaseName": text("The release's name.", empty=False),
            "outLayout": choice("helm", "flat"),
            "useReleaseName": boolean("Name the directory after the release, not the chart."),
            "namespace": text("The namespace to render for."),
            "valuesFiles": texts("Files with values."),
            "ignoreMissingValueFiles": boolean("Pass over values files that do not exist."),
            "setValues": items(
                mapping(
                    {
                        "key": text("The key, dotted.", empty=False),
                        "value": text("Its value."),
                        "literal": boolean("Take the value as it stands."),
                    },
                    required=("key", "value"),
                )
            ),
            "buildDependencies": boolean("Build the chart's dependencies first."),
            "includeCRDs": boolean("Render custom resource definitions too."),
            "disableHooks": boolean("Leave hooks out."),
            "skipTests": boolean("Leave tests out."),
            "kubeVersion": text("The Kubernetes version to render for."),
            "apiVersions": texts("API versions that the cluster has."),
        },
        required=("path", "outPath", "releaseName"),
    ),
    "kustomize-set-image": mapping(
        {
            "path": path("The directory of the kustomization."),
            "images": items(
                mapping(
                    {
                        "image": text("The image.", empty=False),
                        "name": text("Its name in the kustomization."),
                        "newName": text("A name to replace it with."),
                        "tag": text("The tag to set."),
                        "digest": text("The digest to set."),
                    },
                    required=("image",),
                    rule=exactly_one(("tag", "digest"), "give exactly one of tag and digest"),
                )
            ),
        },
        required=("path",),
    ),
    "kustomize-build": mapping(
        {
            "path": path("The directory of the kustomization."),
            "outPath": path("A file, or a directory for one file per manifest."),
            "outputFormat": choice("kargo", "kustomize"),
            "plugin": mapping(
                {
                    "helm": mapping(
                        {
                            "apiVersions": texts("API versions that the cluster has."),
                            "kubeVersion": text("The Kubernetes version to render for."),
                        }
                    )
                }
            ),
        },
        required=("path", "outPath"),
    ),
}
