"""Examples at the end of a command's help, where its own text has none."""

from __future__ import annotations

EXAMPLES = {
    "run": """\
steelyard run ./app input.dat                       one run: what did it take?
steelyard run --repeat 10 -- ./app input.dat        with intervals
steelyard run --warmup 2 'gzip -kf x' 'bzip2 -kf x'  which is faster?
steelyard run -L threads=1,2,4 -- ./app -t {threads}
steelyard run --until 2% --export times.csv -- ./app
steelyard run --prepare 'rm -f x.gz' 'gzip -k x' 'gzip -k1 x'
steelyard run --in podman:debian:12 --repeat 10 -- ./app""",
    "submit": """\
steelyard submit study.toml --dry-run            prints the batch scripts
steelyard submit study.toml                      again: only what is missing
steelyard submit study.toml --scheduler local    here, one after another
steelyard submit study.toml --retry-failed""",
    "status": """\
steelyard status                  the only study in this folder
steelyard status disks --watch    until it is done""",
    "cancel": """\
steelyard cancel disks    results stay; submit again continues""",
    "collect": """\
steelyard collect disks
steelyard collect disks --record-dir /shared/records
steelyard collect --cluster          all users' jobs, as in a cron line
steelyard collect --cluster /srv/jobs --since 90d""",
    "report": """\
steelyard report disks                    disks.html, tables and figures
steelyard report disks -o today.html
steelyard report disks --export csv       every table as a file
steelyard report --preset jungels2012""",
    "summary": """\
steelyard summary disks
steelyard summary disks --engine spark""",
    "history": """\
steelyard history nightly                      all changes, the latest first
steelyard history nightly --figure year.png
steelyard history nightly --fail-on 3% --junit junit.xml    in CI
steelyard history nightly --fail-on 3% --since 2026-11-15   accepted before""",
    "compare": """\
steelyard compare disks clients=1 clients=4    two conditions of a study
steelyard compare 4711 4712                    two jobs""",
    "show": """\
steelyard show 4711                 one job, over its time, with advice
steelyard show 4711 4712 4800_3     several, a line each
steelyard show --mine --since 7d    mine of the last seven days
steelyard show 4711 --json""",
    "top": """\
steelyard top                            users, the last 30 days
steelyard top --by account --since 7d --sort waste
steelyard top --by application --since 2026-10-01 --until 2026-11-01
steelyard top --by partition --csv >november.csv""",
    "metrics": """\
steelyard metrics                  what there is
steelyard metrics /var/lib/node_exporter/steelyard.prom""",
    "publish": """\
steelyard publish --dry-run    print what would be written
steelyard publish              as in a cron line
steelyard publish --hours 72 --energy""",
    "sweep": """\
steelyard sweep --dry-run                       print what would be packed
sudo steelyard sweep --older-than 90d           as in a cron line
sudo steelyard sweep --older-than 1w --quota 5G""",
    "list": """\
steelyard list              benchmarks, example studies, studies here
steelyard list npb          its parameters and figures""",
    "probe": """\
steelyard probe             a page to read
steelyard probe --json      one document for programs""",
    "calibrate": """\
steelyard calibrate                        every launch method that is here
steelyard calibrate --scheduler local      `steelyard run` alone
steelyard calibrate --details              every number""",
    "doctor": """\
steelyard doctor            what works here, what is missing, what to do
sudo steelyard doctor       with the checks that need root
steelyard doctor --nodes n[1-9]  a summary of these nodes""",
    "cluster": """\
steelyard cluster up                four nodes, as any user
sudo steelyard cluster up --virtual 2
steelyard cluster shell             sbatch, srun, sacct use it
steelyard cluster down""",
    "completion": """\
source <(steelyard completion bash)                for this shell alone
eval "$(steelyard completion zsh)"                 the same, in zsh
steelyard completion bash >/etc/bash_completion.d/steelyard
steelyard completion zsh >~/.zfunc/_steelyard      a folder of your $fpath
steelyard completion fish >~/.config/fish/completions/steelyard.fish""",
}
