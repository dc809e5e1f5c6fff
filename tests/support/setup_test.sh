#!/usr/bin/env bash
# Every way scripts/setup.sh can refuse, and what it must not do twice. Nothing is installed: python, pip, apt
# and df are stand-ins on PATH. Run: setup_test.sh REPOSITORY
set -uo pipefail
setup=$(realpath "$1")/scripts/setup.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset TANDEM_VENV PYTHON XDG_CACHE_HOME
failures=0

stand_in() { mkdir -p "$(dirname "$1")"; { echo '#!/bin/sh'; cat; } >"$1"; chmod +x "$1"; }

# A new place for each case: everything installed, room enough, a Python 3.11 whose pip writes down its calls.
begin() {
  name=$1; box=$work/$1; fakes=$box/fakes; calls=$box/calls
  cache=$box/cache; venv=$cache/tandem/torch-2.11.0-py3.11
  mkdir -p "$fakes"; : >"$calls"
  stand_in "$fakes/apt-get" <<<"echo apt-get \"\$@\" >>$calls"
  stand_in "$fakes/sudo" <<<'shift; exec "$@"'
  stand_in "$fakes/dpkg-query" <<'SH'
shift 2; for name; do printf '%s:installed ' "$name"; done
SH
  stand_in "$fakes/df" <<<'printf "head\ndisk 90000 1 89999 1%% /\n"'
  python_is 3.11
  pip_does "echo pip \"\$@\" >>$calls"
}
python_is() {
  stand_in "$fakes/python3" <<SH
case "\$1" in
  -c) echo $1 ;;
  -m) mkdir -p "\$3/bin" && cp $fakes/pip.made "\$3/bin/pip" ;;
esac
SH
}
pip_does() { stand_in "$fakes/pip.made" <<<"$1"; }

run() { env PATH="$fakes:/usr/bin:/bin" HOME="$box" XDG_CACHE_HOME="$cache" "$@" "$setup" >"$box/out" 2>&1; }
wrong() { failures=$((failures + 1)); echo "FAILED $name: $1"; sed 's/^/    /' "$box/out"; }
says() { grep -qF -- "$1" "$box/out" || wrong "expected the sentence: $1"; }
refuses() { local code=$1; [ "$code" = 1 ] || wrong "exit code $code instead of 1"; shift; local s; for s; do says "$s"; done; }
succeeds() { [ "$1" = 0 ] || wrong "exit code $1 instead of 0"; }
called() {   # called HOW_OFTEN PATTERN
  local found; found=$(grep -c -- "$2" "$calls")
  [ "$found" = "$1" ] || wrong "\`$2\` was called $found times instead of $1"
}
incomplete() { [ ! -e "$venv/.tandem-complete" ] || wrong "the environment is marked complete"; }

begin no_python
run PYTHON=no-such-python
refuses $? 'no `no-such-python` found.' 'Install Python 3.10 to 3.13'
called 0 .

begin python_does_not_run
stand_in "$fakes/python3" <<<'exit 3'
run
refuses $? '`python3` does not run.'

begin old_python
python_is 3.8
run
refuses $? 'Python 3.8 is not supported: LibTorch 2.11.0 comes for 3.10 to 3.13.' 'for example PYTHON=python3.11'
called 0 .

begin packages_missing
stand_in "$fakes/dpkg-query" <<<'printf "g++:installed make:not-installed "'
run
succeeds $?
called 1 'apt-get install .*make git'
grep -q 'apt-get install.* g++' "$calls" && wrong 'asks for g++, which is there'

begin apt_fails
stand_in "$fakes/dpkg-query" <<<':'
stand_in "$fakes/apt-get" <<<'echo "E: Unable to fetch" >&2; exit 100'
run
refuses $? 'apt could not install: g++ make' 'E: Unable to fetch' 'Is the network reachable'
called 0 .

begin disk_full
stand_in "$fakes/df" <<<'printf "head\ndisk 90000 89000 1000 99%% /\n"'
run
refuses $? "LibTorch needs about 6000 MB under $cache/tandem, but only 1000 MB are free." 'set XDG_CACHE_HOME to a larger disk'
called 0 pip
incomplete

begin cache_not_writable
: >"$cache"
run
refuses $? "cannot write to $cache/tandem" 'Set XDG_CACHE_HOME'

begin no_home
run HOME= XDG_CACHE_HOME=
refuses $? 'neither HOME nor XDG_CACHE_HOME is set.'

begin no_venv_module
stand_in "$fakes/python3" <<<'[ "$1" = -c ] && echo 3.11 || exit 1'
run
refuses $? '`python3 -m venv` failed.' 'python3-venv'
incomplete

begin no_network
pip_does 'echo "ERROR: Could not find a version (Name or service not known)" >&2; exit 1'
run
refuses $? 'pip could not install torch==2.11.0' 'Name or service not known' 'Run this again to retry.'
incomplete
pip_does "echo pip >>$calls"
run
succeeds $?
says 'found an unfinished or outdated environment; making it again'

begin half_finished
mkdir -p "$venv/bin" "$cache/tandem/tmp"
: >"$venv/left_over"
: >"$cache/tandem/tmp/left_over"
run
succeeds $?
says 'found an unfinished or outdated environment; making it again'
called 1 'pip install .*torch==2.11.0 cmake'
[ ! -e "$venv/left_over" ] || wrong 'the old environment is still there'
[ ! -e "$cache/tandem/tmp" ] || wrong "what pip had unpacked is still there"

begin other_version
mkdir -p "$venv"
printf 'torch==2.10.0' >"$venv/.tandem-complete"
run
succeeds $?
called 1 pip

begin second_call
run
succeeds $?
called 1 pip
run
succeeds $?
called 1 pip
[ ! -s "$box/out" ] || wrong 'the second call should be silent'

begin two_at_once
pip_does "echo pip >>$calls; touch $box/pip_runs; sleep 0.5"
run & first=$!
for _ in $(seq 100); do [ ! -e "$box/pip_runs" ] || break; sleep 0.05; done
mv "$box/out" "$box/out.first"
run; second=$?
wait "$first"; first=$?
succeeds "$first"
succeeds "$second"
says 'another set-up is at work; waiting for it'
called 1 pip

begin given_environment
run TANDEM_VENV="$box/none"
refuses $? "TANDEM_VENV is \`$box/none\`, which does not hold torch and cmake."
called 0 .

begin unknown_argument
env PATH="$fakes:/usr/bin:/bin" HOME="$box" "$setup" --prefx >"$box/out" 2>&1
refuses $? 'unknown argument `--prefx`.'

begin prefix
env PATH="$fakes:/usr/bin:/bin" HOME="$box" "$setup" --prefix >"$box/out" 2>&1
succeeds $?
says "$box/.cache/tandem/torch-2.11.0-py3.11"
called 0 .

[ "$failures" = 0 ] && echo "setup: every refusal has its sentence"
[ "$failures" = 0 ]
