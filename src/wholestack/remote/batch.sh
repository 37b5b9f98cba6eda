# What runs on a host. Read from standard input by `sh -s` (dash, bash, busybox); the lines before this one set:
#   nonce  marks our lines, known to nobody else here     token  marks our processes (in their environment)
#   sudo   1: `sudo -n` may be used                       last   index of the last command
#   total  whole seconds after which all must be over     c_I, l_I, b_I, r_I  command I: text, limit in seconds,
#          bytes of output to pass on, 1 if it needs root
# Nothing touches a disk, so a host without room is no special case. Every line that we write is one write(2) of
# less than 4,096 bytes, which pipes and sockets do not mix with the others':
#   NONCE hello UID .                          the script runs
#   NONCE x I STATUS ENDING CENTISECONDS .     command I is over
#   NONCE e I LENGTH TEXT .                    a piece of its error in base64 (E: hexadecimal); none if there is none
#   NONCE o I LENGTH TEXT .                    a piece of its output, which comes after all else of the command
#   NONCE end .                                nothing will follow

now() { # t: centiseconds since boot; 0 where that is not known
  t=0
  read -r t _ </proc/uptime && t=${t%.*}${t#*.} && t=${t#0}
}

tick() { # USR1 to process $1 after $2 seconds, and again each second: one that comes before its `wait` is lost
  case $2 in *.*) sleep 0.01 || set -- "$1" "$((${2%.*} + 1))" ;; esac
  sleep "$2"
  while kill -s USR1 "$1"; do sleep 1; done
}

halt() { # end a background shell of ours at once; a TERM that comes before its traps are reset is lost
  kill -s KILL "$@"
}

hexadecimal() { od -An -v -tx1 | tr -d ' \n' | fold -w 3000; }

keep() { # kind, index, bytes: pass on the first bytes of standard input; let 64 MiB more go by, then close
  # `read` is asked first whether there is more, since it starts no process.
  text=$({ head -c "$3" && read -r more && head -c 67108864 >/dev/null; } | $encode)
  length=${#text}
  {
    [ "$length" -gt 0 ] || [ "$1" = "$e" ] || printf '\n%s %s %s 0  .\n' "$nonce" "$1" "$2"
    for line in $text; do printf '\n%s %s %s %s %s .\n' "$nonce" "$1" "$2" "$length" "$line"; done
  } >&9
}

start() { # index, command line: becomes the command, leader of a session of its own
  export WHOLESTACK_BATCH="$token.$1."
  shift
  exec 7>&- 8<&- 9>&- </dev/null
  trap - USR1 TERM
  exec $detach "$@"
}

strike() { # signal: to all of the command's session; without setsid to all that carry its mark
  if [ -z "$detach" ]; then
    sweep "$1" "$token.$index."
  elif ! kill -s "$1" -- "-$pid"; then
    [ "$by" != sudo ] || [ "$needs" != 1 ] || sudo -n kill -s "$1" -- "-$pid"
  fi
}

sweep() { # signal, mark: to every process that carries the mark, however far it has gone
  (
    unset WHOLESTACK_BATCH
    cd /proc || exit
    for file in $(grep -lF "$2" [0-9]*/environ); do kill -s "$1" "${file%/environ}"; done
    [ "$by" != sudo ] || exec sudo -n sh -c \
      'cd /proc && for f in $(grep -lF "$2" [0-9]*/environ); do kill -s "$1" "${f%/environ}"; done' sh "$1" "$2"
  )
}

attend() { # wait for $pid; $late rises from its limit on: TERM, a second later KILL, a second later it is hung
  stage=0 ending=ended
  while :; do
    seen=$late
    wait "$pid"
    status=$?
    [ "$late" != "$seen" ] || return
    ending=timed_out
    stage=$((stage + 1))
    case $stage in
      1) signal=TERM ;;
      2) signal=KILL ;;
      *) ending=hung && return ;;
    esac
    strike "$signal"
    kill -s "$signal" "$pid"
  done
}

over() { printf '\n%s x %s %s %s %s .\n' "$nonce" "$1" "$2" "$3" "$4" >&9; }

run() { # index: run it; standard output and error are the command's
  index=$1 late=0
  read -r me _ </proc/self/stat
  trap 'late=$((late + 1))' USR1
  trap 'strike TERM; sleep 1; strike KILL; exit' TERM
  now
  began=$t
  if [ "$by" = sudo ] && [ "$needs" = 1 ]; then
    start "$1" sudo -n env LC_ALL=C PATH="$PATH" WHOLESTACK_BATCH="$token.$1." sh -c "$command" &
  else
    start "$1" sh -c "$command" &
  fi
  pid=$!
  exec >/dev/null 2>&1
  tick "$me" "$limit" &
  clock=$!
  attend
  now
  [ "$ending" = hung ] || strike KILL # what the command left in its session
  halt "$clock"
  over "$1" "$status" "$ending" "$((t - began))"
  [ "$ending" != hung ] || sweep KILL "$token-$1-"
}

job() { # index: one command with its two readers
  eval "command=\$c_$1 limit=\$l_$1 bytes=\$b_$1 needs=\$r_$1"
  if [ "$needs" = 1 ] && [ -z "$by" ]; then over "$1" 0 needs_root 0 && return; fi
  export WHOLESTACK_BATCH="$token-$1-"
  exec 8<&-
  # The output ends when the braces do, that is after `over` and after the error has been passed on.
  # Subshells with `exec`: on a function call a shell keeps a copy of what it redirects, and so of the pipe.
  {
    (exec 2>&1 >&7 7>&- && run "$1") | (exec >/dev/null 7>&- && keep "$e" "$1" 2001)
  } 7>&1 | keep "$o" "$1" "$bytes"
}

launch() { # 0 or 1: all commands that need no root, or those that do
  index=0
  while [ "$index" -le "$last" ]; do
    eval "needs=\$r_$index"
    [ "$needs" != "$1" ] || { job "$index" & jobs="$jobs $!"; }
    index=$((index + 1))
  done
}

become_root() { # by: how root is had ("" if not); a sudo that hangs is given five seconds
  by=
  [ "$uid" != 0 ] || by=root
  [ "$uid" != 0 ] && [ "$sudo" = 1 ] || return 0
  start sudo sudo -n true &
  pid=$!
  tick $$ 5 &
  clock=$!
  index=sudo
  attend
  halt "$clock"
  [ "$ending" != ended ] || [ "$status" != 0 ] || by=sudo
}

guard() { # the client is gone when standard input ends: end everything
  cat <&8 || exit # killed by our own last sweep
  trap '' TERM
  kill -s TERM 0
  sleep 2
  sweep KILL "$token"
}

settle() { # wait for all; what is left after the total is swept away: commands first, so that their readers end
  tick $$ "$total" &
  clock=$!
  stage=0
  for each in $jobs; do
    while :; do
      seen=$late
      wait "$each"
      [ "$late" != "$seen" ] || break
      stage=$((stage + 1))
      case $stage in
        1) sweep TERM "$token." ;;
        2) sweep KILL "$token." ;;
        3) sweep KILL "$token-" ;;
        *) return ;;
      esac
    done
  done
}

main() {
  exec 8<&0 9>&1 </dev/null >/dev/null 2>&1
  uid=$(id -u)
  printf '\n%s hello %s .\n' "$nonce" "$uid" >&9
  cd /
  ulimit -c 0
  unset ENV BASH_ENV CDPATH COLUMNS GREP_OPTIONS
  PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/cuda/bin
  export PATH LC_ALL=C TERM=dumb PAGER=cat WHOLESTACK_BATCH="$token"
  detach= jobs= late=0 o=o e=e
  ! command -v setsid || detach=setsid
  encode='base64 -w 3000'
  [ "$(printf x | $encode)" = eA== ] || encode=base64
  [ "$(printf x | $encode)" = eA== ] || { encode=hexadecimal o=O e=E; }
  trap 'late=$((late + 1))' USR1
  guard &
  by=
  launch 0
  become_root
  launch 1
  settle
  printf '\n%s end .\n' "$nonce" >&9
  halt "$clock"
  sweep KILL "$token"
  exit 0
}

main
