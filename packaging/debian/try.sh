#!/bin/sh
# Tries the package as an administrator would: install, serve, configure, upgrade, remove, purge. It works on a
# copy of this system that only this script sees, and that is gone when it ends. Needs root.
#
#   packaging/debian/try.sh target/debian/keyway_VERSION_ARCHITECTURE.deb
set -eu

deb=$(realpath "$1")
if [ "${2-}" != inside ]; then
    exec unshare --mount --net --pid --fork --kill-child sh "$(realpath "$0")" "$deb" inside
fi

say() { echo "try: $*"; }
fail() { say "FAILED: $*"; exit 1; }

# The copy: changes go to memory.
space=$(mktemp -d)
mount -t tmpfs tmpfs "$space"
mkdir "$space/changes" "$space/work" "$space/root"
root=$space/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$space/changes,workdir=$space/work" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
cp "$deb" "$root/tmp/keyway.deb"
ip link set lo up
export DEBIAN_FRONTEND=noninteractive LDAPCONF=/dev/null
in_copy() { chroot "$root" "$@"; }

data=/var/lib/keyway
search() { # the text that has to be in the answer, and the arguments
    expected=$1
    shift
    LDAPTLS_CACERT=$root$data/ca.pem timeout 60 ldapsearch -x -LLL -o nettimeout=60 "$@" > "$space/answer" 2>&1 ||
        fail "ldapsearch $*: $(cat "$space/answer")"
    grep -q "$expected" "$space/answer" || fail "no '$expected' in: $(cat "$space/answer")"
}

# As systemd would: root binds the sockets, and the unit's process runs as keyway.
start() {
    command=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/keyway.service")
    # shellcheck disable=SC2086
    # Not by a function: this process itself becomes the server.
    chroot "$root" systemd-socket-activate -l 389 -l 636 setpriv --reuid keyway --regid keyway --init-groups \
        --bounding-set=-all --no-new-privs $command > "$space/output" 2>&1 &
    server=$!
    # Waits until the sockets are bound; from then on no client is refused.
    until ss -ltn | grep -q ':636 '; do
        kill -0 "$server" || fail "it does not start: $(cat "$space/output")"
    done
    search 'namingContexts: cn=keyway\|supportedLDAPVersion' -H ldap://localhost -s base -b '' '+'
}
stop() {
    kill "$server"
    wait "$server" || fail "it ended with $?: $(cat "$space/output")"
}

say "install"
in_copy dpkg -i /tmp/keyway.deb
in_copy systemd-analyze verify --man=no /lib/systemd/system/keyway.service /lib/systemd/system/keyway.socket \
    /lib/systemd/system/keyway-esp@.service
[ "$(in_copy stat -c %U:%a $data)" = keyway:700 ] || fail "$data is $(in_copy stat -c %U:%a $data)"
say "serve, on ports below 1024, in four processes and none of root (cryptod has one that identifies its clients)"
start
[ "$(in_copy ps -C keyway -o user= | sort | uniq -c | tr -s ' ')" = " 4 keyway" ] ||
    fail "wrong owners of processes: $(in_copy ps -C keyway -o user=,args=)"
admin="-D cn=admin,cn=keyway -y $root$data/admin-password"
stop

say "a tree of the administrator's own"
sed -i 's/^naming_contexts = .*/naming_contexts = ["dc=example,dc=org"] # mine/' "$root/etc/keyway/keyway.toml"
start
printf 'dn: dc=example,dc=org\nobjectClass: domain\ndc: example\n' |
    LDAPTLS_CACERT=$root$data/ca.pem ldapadd -x -ZZ -H ldap://localhost $admin
search 'dc=example,dc=org' -ZZ -H ldap://localhost $admin -b dc=example,dc=org '(dc=example)'
search 'dc=example,dc=org' -H ldaps://localhost $admin -b dc=example,dc=org '(dc=example)'
stop

say "upgrade over itself: configuration and entries stay"
in_copy dpkg -i /tmp/keyway.deb
grep -q '# mine' "$root/etc/keyway/keyway.toml" || fail "the configuration was replaced"
start
search 'dc=example,dc=org' -H ldaps://localhost $admin -b dc=example,dc=org '(dc=example)'
stop

say "remove: both stay"
in_copy dpkg -r keyway
[ ! -e "$root/usr/bin/keyway" ] || fail "the program is still there"
[ -e "$root/etc/keyway/keyway.toml" ] || fail "the configuration went with a removal"
[ -d "$root$data/store" ] || fail "the data went with a removal"
say "purge: the data stays unless the administrator agrees"
in_copy dpkg -P keyway
[ ! -e "$root/etc/keyway" ] || fail "the configuration stayed: $(ls "$root/etc/keyway")"
[ -d "$root$data/store" ] || fail "the data was removed without consent"
say "install on that data again, and purge with it"
in_copy dpkg -i /tmp/keyway.deb
echo 'keyway keyway/purge_data boolean true' | in_copy debconf-set-selections
in_copy dpkg -P keyway
[ ! -e "$root$data" ] || fail "the data stayed: $(ls "$root$data")"
say "all as it should be"
