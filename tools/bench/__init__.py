"""What the product costs and how fast it is: `loop` (whole loop), `agent` (one node), `gpu` (NVML calls)."""
