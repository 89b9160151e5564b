"""Network cards: ConnectX firmware, slot power and heat, link state of any Ethernet card.

A port may say ACTIVE while its firmware is dead: the command timeout line is the proof.
"""

from checks.kernel.parse.event import fault, noise, variant

_MLX5 = r"(?:mlx5_core|mlx5_ib|mlx5_\w{1,48}) ?(?P<device>@)?:? ?(?:[\w.-]{1,32}: )?"
_ANY = r".{0,160}?"

_DRIVERS = (
    "ixgbe|ixgbevf|i40e|iavf|ice|idpf|igb|igbvf|igc|e1000e?|bnxt_en|bnx2x?|tg3|be2net|qede?|qlcnic|r8169|ena|gve|"
    "cxgb4|sfc|atlantic|hns3|mlx4_en|mlx4_core|enic|fm10k|nfp|ionic|mana|virtio_net|vmxnet3|hv_netvsc|efa|irdma"
)
_NIC = rf"(?:{_DRIVERS})(?: (?P<device>@))?:?(?: [\w.-]{{1,32}}:?){{0,3}}?"

WORDINGS = (
    *noise("mlx5", rf"mlx5_core {_ANY}ACCESS_REG\b{_ANY} failed"),
    *fault(
        "mlx5-cmd-timeout",
        rf"{_MLX5}{_ANY}(?:Will cause a leak of a command resource|leak of a command resource)",
    ),
    *fault("mlx5-tx-timeout", rf"{_MLX5}{_ANY}\bTX timeout detected"),
    *fault(
        "mlx5-health",
        rf"{_MLX5}{_ANY}(?:health recovery failed|Waiting for FW (?:pre-)?initialization.{{0,80}}?abort"
        r"|mlx5_(?:init_one|function_setup|load_one)\b.{0,40}? failed|[Ff]irmware over .{1,40}? MS in .{0,40}?"
        r"initializing state, aborting)",
        rf"{_MLX5}{_ANY}(?:health compromised|Fatal error \d{{1,3}} detected|health recovery flow aborted"
        r"|Health issue observed, (?:firmware internal error|irisc not responding|unrecoverable hardware))",
    ),
    *fault(
        "mlx5-slot-power",
        rf"{_MLX5}{_ANY}(?:[Dd]etected insufficient power on the PCIe slot"
        r"|powered down due to insufficient)",
    ),
    *fault("mlx5-module-temp", rf"{_MLX5}{_ANY}[Hh]igh [Tt]emperature"),
    *fault("mlx5-eqe-recovered", rf"{_MLX5}{_ANY}Recovered \d{{1,9}} eqes"),
    *fault("mlx5-link-down", rf"{_MLX5}{_ANY}\b[Ll]ink (?:is )?(?:[Dd]own|DOWN)\b"),
    *fault("mlx5-link-up", rf"{_MLX5}{_ANY}\b[Ll]ink (?:is )?(?:[Uu]p|UP|ACTIVE)\b"),
    *fault(
        "nic-link-down",
        rf"{_NIC} (?:NIC )?(?:Copper |Fibre |SerDes )?[Ll]ink (?:is )?(?:[Dd]own|DOWN)\b",
    ),
    *variant(
        fault(
            "nic-link-down",
            r"(?:bonding: )?(?P<device>\w{1,15}): (?:\(slave \S{1,15}\): )?link status definitely down\b",
        ),
        "a member of the bond lost its link.",
    ),
    *noise(
        "nic",
        rf"{_NIC} (?:NIC )?(?:Copper |Fibre |SerDes )?[Ll]ink (?:is )?(?:[Uu]p|UP)\b",
        code="nic-link-up",
    ),
)
