"""The layout of ``nvidia-smi -q -x`` by series of the driver.

Sources: the DTDs ``nvsmi_device_v11`` to ``v13`` as seen in outputs of drivers 515, 535, 555, 575 and 580:

* before 520: DTD v11; before 530: ``clocks_throttle_reasons`` and ``power_readings``;
* 530 to 559 (v12): ``clocks_event_reasons``, ``gpu_power_readings``; from 550 on SRAM errors are split by parity and
  SEC-DED for products since Ampere, and temperatures are given as the distance to the limit where the product does;
* 560 to 579 (v12): ``gpu_recovery_action``, average and instant power, "Requested functionality has been deprecated";
* from 580 (v13): the same with the channel and TPC repair flags.
"""

from dataclasses import dataclass

DEPRECATED = "Requested functionality has been deprecated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What differs between series."""

    dtd: str
    reasons: str
    """``throttle`` or ``event``."""
    power: str
    """``old`` (power_readings), ``single`` or ``split`` (average and instant)."""
    split_sram: bool
    recovery: bool
    repairs: bool
    tlimit: bool


def layout_of(driver: str) -> Layout:
    """The layout that a driver version prints."""
    series = int(driver.split(".", maxsplit=1)[0])
    return Layout(
        dtd="nvsmi_device_v13.dtd" if series >= 580 else f"nvsmi_device_v{12 if series >= 520 else 11}.dtd",
        reasons="event" if series >= 530 else "throttle",
        power="split" if series >= 560 else "single" if series >= 530 else "old",
        split_sram=series >= 550,
        recovery=series >= 560,
        repairs=series >= 580,
        tlimit=series >= 550,
    )
