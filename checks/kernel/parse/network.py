"""Network cards: ConnectX firmware, slot power and heat, link state of any Ethernet card.

A port may say ACTIVE while its firmware is dead: the command timeout line is the proof.
"""

from checks.finding import Action, Severity
from checks.kernel.pattern import fault, noise

_DEAD = (Severity.CRITICAL, Action.FAILOVER)
_WATCH = (Severity.WARNING, Action.NONE)
_COUNT = (Severity.INFO, Action.NONE)

_MLX5 = r"(?:mlx5_core|mlx5_ib|mlx5_\d{1,3}) ?(?P<device>@)?:? ?(?:[\w.-]{1,32}: )?"
_ANY = r".{0,160}?"

_DRIVERS = (
    "ixgbe|ixgbevf|i40e|iavf|ice|idpf|igb|igbvf|igc|e1000e?|bnxt_en|bnx2x?|tg3|be2net|qede?|qlcnic|r8169|ena|gve|"
    "cxgb4|sfc|atlantic|hns3|mlx4_en|mlx4_core|enic|fm10k|nfp|ionic|mana|virtio_net|vmxnet3|hv_netvsc|efa|irdma"
)
_NIC = rf"(?:{_DRIVERS})(?: (?P<device>@))?:?(?: [\w.-]{{1,32}}:?){{0,3}}?"

PATTERNS = (
    noise(rf"mlx5_core {_ANY}ACCESS_REG\b{_ANY} failed", "mlx5"),
    fault(
        rf"{_MLX5}{_ANY}(?:Will cause a leak of a command resource|leak of a command resource)",
        "mlx5",
        "mlx5-cmd-timeout",
        _DEAD,
        "the network card's firmware no longer answers commands, whatever the port state says.",
    ),
    fault(
        rf"{_MLX5}{_ANY}(?:health compromised|Fatal error \d{{1,3}} detected|health recovery flow aborted"
        r"|Health issue observed, (?:firmware internal error|irisc not responding|unrecoverable hardware))",
        "mlx5",
        "mlx5-health",
        _DEAD,
        "the network card's firmware stopped.",
    ),
    fault(
        rf"{_MLX5}{_ANY}(?:[Dd]etected insufficient power on the PCIe slot"
        r"|powered down due to insufficient)",
        "mlx5",
        "mlx5-slot-power",
        _WATCH,
        "the slot promises the network card too little power; common once at boot.",
    ),
    fault(
        rf"{_MLX5}{_ANY}[Hh]igh [Tt]emperature",
        "mlx5",
        "mlx5-module-temp",
        _WATCH,
        "the network card or its optical module runs hot.",
    ),
    fault(
        rf"{_MLX5}{_ANY}Recovered \d{{1,9}} eqes",
        "mlx5",
        "mlx5-eqe-recovered",
        _WATCH,
        "an interrupt of the network card was lost and made up for.",
    ),
    fault(
        rf"{_MLX5}{_ANY}\b[Ll]ink (?:is )?(?:[Dd]own|DOWN)\b",
        "mlx5",
        "mlx5-link-down",
        _WATCH,
        "its network link is down; confirm by carrier, and that nobody set the port down.",
    ),
    fault(
        rf"{_MLX5}{_ANY}\b[Ll]ink (?:is )?(?:[Uu]p|UP)\b",
        "mlx5",
        "mlx5-link-up",
        _COUNT,
        "its network link is up.",
    ),
    fault(
        rf"{_NIC} (?:NIC )?(?:Copper |Fibre |SerDes )?[Ll]ink (?:is )?(?:[Dd]own|DOWN)\b",
        "nic",
        "nic-link-down",
        _WATCH,
        "its network link is down; confirm by carrier, and that nobody set the port down.",
    ),
    fault(
        r"(?:bonding: )?(?P<device>\w{1,15}): (?:\(slave \S{1,15}\): )?link status definitely down\b",
        "nic",
        "nic-link-down",
        _WATCH,
        "a member of the bond lost its link.",
    ),
    noise(
        rf"{_NIC} (?:NIC )?(?:Copper |Fibre |SerDes )?[Ll]ink (?:is )?(?:[Uu]p|UP)\b", "nic", "nic-link-up"
    ),
)
