"""What other node agents say they cost: the figures that ours are printed beside."""

from typing import NamedTuple


class Published(NamedTuple):
    """A figure as its project states it; `source` says where."""

    program: str
    cpu: str
    memory: str
    source: str


FIGURES = (
    Published("gpud", "about 20m", "130 Mi steady", "leptonai/gpud PR #1262; requests 50m, 256 Mi"),
    Published(
        "node-problem-detector", "10m", "80 Mi", "requests = limits; CPU spike at 4,500 lines a minute, #282"
    ),
    Published("dcgm-exporter", "100m asked", "128 Mi asked, 400-517 MiB seen", "dcgm-exporter #609, #702"),
    Published("NVSentinel", "100m-500m", "128-512 Mi", "limits of one monitor"),
    Published("EKS node monitoring agent", "10m asked, 250m limit", "30 Mi asked, 200 Mi limit", "its chart"),
    Published("gcm", "2 cores", "1 GB", "its slice's cap"),
)
