"""Queue settings of groups in the simulator: order, waits, bounds; those who use them and what must hold."""
