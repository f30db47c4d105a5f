#!/usr/bin/env python3
"""Pack a root file system as an OCI image that podman and docker load.

    oci_archive.py LAYER.tar IMAGE.tar VERSION REVISION

Times are SOURCE_DATE_EPOCH's, so that equal layers give equal images.
"""

import gzip
import hashlib
import io
import json
import os
import sys
import tarfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_TYPE = "application/vnd.oci.image."
_CONFIG = {
    "Env": [
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "LC_ALL=C.UTF-8",
        "TWOWAY_SANDBOX=container",  # twoway/confinement.py
    ],
    "Entrypoint": ["twoway"],
    "WorkingDir": "/work",
}


def main() -> None:
    """Write the image that the arguments name."""
    layer, image, version, revision = sys.argv[1:]
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    content = Path(layer).read_bytes()
    packed = gzip.compress(content, 6, mtime=0)
    labels = {"title": "twoway", "version": version, "revision": revision}
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "created": datetime.fromtimestamp(epoch, UTC).isoformat(),
            "config": _CONFIG
            | {"Labels": {f"org.opencontainers.image.{k}": v for k, v in labels.items()}},
            "rootfs": {"type": "layers", "diff_ids": [_digest(content)]},
        }
    )
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}manifest.v1+json",
            "config": _descriptor("config.v1+json", config),
            "layers": [_descriptor("layer.v1.tar+gzip", packed)],
        }
    )
    name = f"localhost/twoway:{version}"
    named = {"annotations": {"org.opencontainers.image.ref.name": name}}
    index = {"schemaVersion": 2, "manifests": [_descriptor("manifest.v1+json", manifest) | named]}
    # Docker before version 25 reads this instead of the index.
    docker = {"Config": _blob(config), "RepoTags": [name], "Layers": [_blob(packed)]}
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json(index),
        "manifest.json": _json([docker]),
        **{_blob(blob): blob for blob in (config, manifest, packed)},
    }
    with tarfile.open(image, "w") as archive:
        for path, blob in files.items():
            member = tarfile.TarInfo(path)
            member.size, member.mtime = len(blob), epoch
            archive.addfile(member, io.BytesIO(blob))


def _json(document: Any) -> bytes:
    return json.dumps(document, sort_keys=True).encode()


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _blob(blob: bytes) -> str:
    """Return the path of a blob in the archive."""
    return f"blobs/{_digest(blob).replace(':', '/')}"


def _descriptor(kind: str, blob: bytes) -> dict[str, Any]:
    return {"mediaType": _TYPE + kind, "digest": _digest(blob), "size": len(blob)}


if __name__ == "__main__":
    main()
