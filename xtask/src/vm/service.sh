#!/bin/busybox sh
# Acts as service manager and operator of the daemon, on the console of a virtual machine.
export PATH=/usr/local/bin:/bin
echo "vm: begin $(uname -r)"
bad=0

# verdict NAME WHETHER [WHAT IS WRONG]
verdict() {
    if [ "$2" = 0 ]; then
        echo "ok $1"
    else
        bad=1
        echo "failed $1: $3"
        systemctl status --no-pager --lines=20 ctrace 2>&1 | sed 's/^/    /'
    fi
}

# until_true COMMAND: waits up to three minutes, since the CPU is slow.
until_true() {
    for _ in $(seq 180); do
        if eval "$1" >/dev/null 2>&1; then return 0; fi
        sleep 1
    done
    return 1
}

end() {
    echo "vm: end $bad"
    sync
    poweroff -f
}

property() { systemctl show --value --property="$1" ctrace; }
traced() { ctrace ctl targets --json | grep -o '"state":"traced"' | wc -l; }
calls() { grep -o '"calls":[0-9]*' "/var/log/ctrace/$1.jsonl" | tail -n 1 | cut -d: -f2; }

configure() {
    cat >/etc/ctrace/ctrace.toml <<END
[[target]]
id = "spin"
unit = "spin.service"
functions = ["step"]
interval = "$1"
output = "/var/log/ctrace/spin.jsonl"

[[target]]
id = "scopes"
unit = "scopes.service"
markers = ["*"]
interval = "$1"
output = "/var/log/ctrace/scopes.jsonl"
END
}

# Only their user may read the programs: CAP_DAC_READ_SEARCH is for that.
chown -R nobody /srv
chmod 700 /srv /srv/*
mkdir -p /etc/ctrace
configure 2s

systemctl start spin scopes && sleep 1 && systemctl -q is-active spin scopes
verdict targets_start $? "the targets do not start"
systemctl start ctrace
verdict start $? "systemctl start"
[ "$(property Type)/$(property ActiveState)" = notify/active ] && [ -n "$(property StatusText)" ]
verdict says_when_it_is_ready $? "$(property Type) $(property ActiveState) $(property StatusText)"

status=/proc/$(property MainPID)/status
has() { grep -qi "^$1:[[:space:]]*$2\$" "$status"; }
# CAP_DAC_READ_SEARCH (2), CAP_SYS_PTRACE (19), CAP_PERFMON (38), CAP_BPF (39)
has CapEff 000000c000080004 && has CapBnd 000000c000080004 && has NoNewPrivs 1 && has Seccomp 2
verdict has_no_more_rights $? "$(grep -E 'Cap|NoNew|Seccomp' "$status" | tr '\n' ' ')"

until_true '[ "$(traced)" = 2 ]'
verdict traces_services_of_another_user $? "$(ctrace ctl targets)"
[ "$bad" = 0 ] || end
until_true '[ "$(calls spin)" -gt 50 ]'
verdict reports_functions $? "$(tail -n 1 /var/log/ctrace/spin.jsonl)"
until_true '[ "$(calls scopes)" -gt 50 ]'
verdict reports_markers $? "$(tail -n 1 /var/log/ctrace/scopes.jsonl)"
grep -q '"lost":[1-9]' /var/log/ctrace/*.jsonl
verdict loses_nothing $((! $?)) "$(grep -h -o '"lost":[1-9][0-9]*' /var/log/ctrace/*.jsonl | head -n 3)"

metrics=$(wget -q -O - http://127.0.0.1:9779/metrics 2>&1)
echo "$metrics" | grep -q '^ctrace_function_calls_total{.*function="step".* [1-9]'
verdict serves_metrics $? "$(echo "$metrics" | grep -v '^#' | grep -m 5 step)"

file=$(ctrace ctl record spin --json -d 2 | sed 's/.*"file":"\([^"]*\)".*/\1/')
case $file in /var/lib/ctrace/*) ctrace report --format json "$file" | grep -q '"step"' ;; *) false ;; esac
verdict records_into_its_state_directory $? "$file"

pid=$(property MainPID)
configure 3s
systemctl reload ctrace && until_true 'ctrace ctl targets --json | grep -q "\"interval_s\":3"'
verdict reloads $? "$(ctrace ctl targets --json)"
echo 'nonsense = 1' >>/etc/ctrace/ctrace.toml
systemctl reload ctrace
[ $? != 0 ] && [ "$(property ActiveState)" = active ] && [ "$(property MainPID)" = "$pid" ] \
    && ctrace ctl reload 2>&1 | grep -q nonsense
verdict a_broken_configuration_is_refused $? "$(property ActiveState) $(property MainPID), was $pid"
configure 2s
until_true '[ "$(traced)" = 2 ]'
verdict and_the_old_one_kept $? "$(ctrace ctl targets)"

systemctl stop spin
until_true '[ "$(traced)" = 1 ]' && systemctl start spin && until_true '[ "$(traced)" = 2 ]'
verdict finds_a_restarted_service $? "$(ctrace ctl targets)"

mkdir -p /etc/systemd/system/ctrace.service.d
printf '[Service]\nWatchdogSec=20\n' >/etc/systemd/system/ctrace.service.d/watchdog.conf
systemctl daemon-reload && systemctl restart ctrace && until_true '[ "$(traced)" = 2 ]'
verdict restarts $? "$(ctrace ctl targets)"
kill -STOP "$(property MainPID)"
until_true '[ "$(property NRestarts)" -gt 0 ]' && until_true '[ "$(traced)" = 2 ]'
verdict is_restarted_when_it_hangs $? "$(property NRestarts) restarts"

# No interval ends by itself any more.
configure 600s
systemctl restart ctrace && until_true '[ "$(traced)" = 2 ]'
lines=$(cat /var/log/ctrace/spin.jsonl | wc -l)
systemctl stop ctrace
[ "$(property Result)" = success ] && [ "$(cat /var/log/ctrace/spin.jsonl | wc -l)" -gt "$lines" ]
verdict ends_with_a_last_report $? "$(property Result)"
systemctl is-active spin scopes >/dev/null
verdict its_targets_live_on $? "$(systemctl is-active spin scopes | tr '\n' ' ')"

end
