"""Mounts of /etc/fstab: mount what is missing, take off and mount again what is stale or hangs."""

from wholestack.health.fixes.fix import About, ShellFix

FIXES = (
    ShellFix(
        about=About(
            name="mount",
            says="mount what /etc/fstab names",
            causes=("mount.missing",),
            source="mount(8)",
        ),
        lines=lambda fault: (f"mount {fault.place()}",),
    ),
    ShellFix(
        about=About(
            name="remount",
            says="take the NFS mount off and mount it again",
            causes=("mount.stale", "mount.hung"),
            source="umount(8), -f and -l; mount(8)",
        ),
        lines=lambda fault: (f"umount -f -l {fault.place()}", f"mount {fault.place()}"),
    ),
)
