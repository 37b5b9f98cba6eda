"""Simulated hosts that answer the commands of real tools, healthy or with an injected fault.

Written from the tools' documented formats; knows nothing of the checks (an import-linter contract), so that what is
measured with it is not what was put into it.

How the parts work together::

    fleet = Fleet(4096, seed=7)                          fleet.py: hosts of the kinds of kinds.py, with a past
    fleet.inject_mixture(share=0.1)                      faults/table.py: all kinds of fault; plan.py: from a file
    first = render_all(fleet, commands)                  remote.py: a Remote; FleetRemote renders when it is asked
    fleet.advance(600)                                   ageing.py: jobs, counters and logs go on
    second = render_all(fleet, commands)                 some faults are rates: two sweeps tell them
    compare(fleet.truths, found)                         truth.py: found, right part, right owner, false alarms

``reactions.py`` says what commands that change a host do to it.
``serve.py`` puts the same hosts behind a real SSH server.
"""
