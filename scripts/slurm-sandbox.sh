#!/usr/bin/env bash
# A real SLURM of one host with two made-up GPUs, to try job scripts without a cluster. Jobs in partition `urgent` preempt
# those in `gpu`, which get 10 s to stop and are requeued. Loopback only, no systemd, all
# of it in one folder ($SLURM_SANDBOX, else tandem-slurm-<user> in $TMPDIR); what it started it stops by its own pid.
#   scripts/slurm-sandbox.sh start [--install]   --install: Debian's slurm-wlm and munge first, when missing (root or sudo)
#   eval "$(scripts/slurm-sandbox.sh env)"       then sbatch, squeue, scancel and scontrol mean this one
#   scripts/slurm-sandbox.sh status
#   scripts/slurm-sandbox.sh stop                also removes the folder
set -euo pipefail
fail() { printf 'slurm-sandbox: error: %s\n' "$1" >&2; [ -z "${2:-}" ] || printf 'slurm-sandbox: %s\n' "$2" >&2; exit 1; }
usage() { fail "$1" "Use: scripts/slurm-sandbox.sh start [--install] | env | status | stop"; }

export PATH=$PATH:/usr/sbin:/sbin
user=$(id -un)
folder=${SLURM_SANDBOX:-${TMPDIR:-/tmp}/tandem-slurm-$user}
daemons=(munged slurmctld slurmd)
node=$(hostname -s)

# The daemon's pid when it runs and is ours: a pid file may outlive its process, and the number be another's by then.
pid_of() {
  local pid
  pid=$(cat "$folder/$1.pid" 2>/dev/null) && [ -n "$pid" ] || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF "$folder/" || return 1
  echo "$pid"
}

install_packages() {
  local as_root=()
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  echo "slurm-sandbox: installing slurm-wlm and munge"
  {
    "${as_root[@]}" apt-get -qq update
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends slurm-wlm munge
  } >"$folder/apt.log" 2>&1 || fail "slurm-wlm and munge could not be installed." "See $folder/apt.log"
}

free_ports() {   # two of them; nothing is reserved, but the daemons start at once
  python3 - <<'PY'
import socket
held = [socket.socket() for _ in range(2)]
for s in held: s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in held])
PY
}

write_configuration() {
  local ports
  read -ra ports < <(free_ports)
  # The node claims more than it has (config_overrides): job scripts ask for 8 CPUs of 16 GB. A requeued job waits
  # cred_expire seconds before it starts again; 120 on a real cluster.
  cat >"$folder/slurm.conf" <<CONF
ClusterName=tandem
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=${ports[0]}
SlurmdPort=${ports[1]}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,sched_min_interval=0
MpiDefault=none
ReturnToService=2
JobRequeue=1
KillWait=10
MinJobAge=3600
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/jobs.txt
GresTypes=gpu
NodeName=$node NodeAddr=127.0.0.1 CPUs=16 RealMemory=262144 Gres=gpu:2 State=UNKNOWN
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=gpu Nodes=$node Default=YES MaxTime=INFINITE PriorityTier=1 GraceTime=10 State=UP
PartitionName=urgent Nodes=$node MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP
CONF
  cat >"$folder/gres.conf" <<CONF
Name=gpu File=/dev/null
Name=gpu File=/dev/zero
CONF
}

wait_for() {   # wait_for SECONDS WHAT COMMAND...
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ "$SECONDS" -lt "$end" ] || fail "$what did not come up." "Its log is in $folder"
    sleep 0.2
  done
}
node_is_ready() { SLURM_CONF=$folder/slurm.conf sinfo -h -o %t | grep -qE '^(idle|mix|alloc)$'; }
munge_answers() { munge --socket "$folder/munge.socket" -n | unmunge --socket "$folder/munge.socket"; }

start() {
  umask 022   # munge refuses folders others may write to
  mkdir -p "$folder"
  if pid_of slurmctld >/dev/null && pid_of slurmd >/dev/null; then status; return; fi
  if ! command -v slurmctld slurmd munged sbatch >/dev/null; then
    [ "${1:-}" = --install ] || fail "SLURM is not installed." "Run: scripts/slurm-sandbox.sh start --install"
    install_packages
  fi
  stop_daemons
  mkdir -p "$folder/state" "$folder/spool"
  write_configuration
  [ -s "$folder/munge.key" ] || (umask 077 && head -c 1024 /dev/urandom >"$folder/munge.key")
  munged --force --key-file "$folder/munge.key" --socket "$folder/munge.socket" --pid-file "$folder/munged.pid" \
    --log-file "$folder/munged.log" --seed-file "$folder/munged.seed" 2>/dev/null ||
    fail "munged did not start." "See $folder/munged.log"
  wait_for 20 munged munge_answers
  export SLURM_CONF=$folder/slurm.conf
  slurmctld -c -f "$SLURM_CONF" || fail "slurmctld did not start." "See $folder/slurmctld.log"
  slurmd -f "$SLURM_CONF" -N "$node" || fail "slurmd did not start." "See $folder/slurmd.log"
  wait_for 30 "the node" node_is_ready
  status
  echo "slurm-sandbox: eval \"\$(scripts/slurm-sandbox.sh env)\""
}

status() {
  local daemon pid down=0
  for daemon in "${daemons[@]}"; do
    if pid=$(pid_of "$daemon"); then printf '%-10s runs, pid %s\n' "$daemon" "$pid"
    else printf '%-10s is down\n' "$daemon"; down=1; fi
  done
  [ "$down" = 0 ] || return 1
  SLURM_CONF=$folder/slurm.conf sinfo -o '%.12n %.8T %.6c %.10m %.8G'
}

stop_daemons() {   # jobs' own processes go with their slurmstepd, which slurmctld's end does not touch: cancel them first
  local daemon pid
  if pid_of slurmctld >/dev/null; then
    SLURM_CONF=$folder/slurm.conf scancel --user="$user" 2>/dev/null || true
    for _ in {1..50}; do
      [ -n "$(SLURM_CONF=$folder/slurm.conf squeue -h 2>/dev/null)" ] || break
      sleep 0.2
    done
  fi
  for daemon in slurmd slurmctld munged; do
    pid=$(pid_of "$daemon") || continue
    kill "$pid"
    for _ in {1..50}; do pid_of "$daemon" >/dev/null || break; sleep 0.2; done
    pid=$(pid_of "$daemon") && kill -KILL "$pid"
    rm -f "$folder/$daemon.pid"
  done
}

case "${1:-}" in
  start) [ $# = 1 ] || [ "${2:-}" = --install ] || usage "unknown argument \`$2\`."
         start "${2:-}" ;;
  env) [ -f "$folder/slurm.conf" ] || fail "there is no sandbox in $folder." "Run: scripts/slurm-sandbox.sh start"
       printf 'export SLURM_CONF=%q\n' "$folder/slurm.conf" ;;
  status) status ;;
  stop) stop_daemons
        [ ! -f "$folder/slurm.conf" ] || rm -rf "$folder"
        echo "slurm-sandbox: stopped" ;;
  "") usage "a command is needed." ;;
  *) usage "unknown command \`$1\`." ;;
esac
