"""The owner of a job: what the program did, on which GPU, and that the hardware is not to blame."""

from wholestack.health.owners.owner import About, TableOwner, Wants

OWNERS = (
    TableOwner(
        about=About(
            name="job owner",
            acts_for="job owner",
            says="the job that ran there",
            source="NVIDIA Xid Errors (application errors); sacct(1)",
        ),
        otherwise=Wants(
            items=("slot", "evidence", "log_lines", "history", "remedy"),
            asks=("which job ran there at that time: sacct --nodelist HOST --starttime TIME",),
        ),
    ),
)
