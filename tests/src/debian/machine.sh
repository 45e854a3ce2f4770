#!/bin/sh
# A machine of its own for other people's programs: this one, with layers over /usr, /etc and /var
# and a /run of its own, in a mount namespace that `unshare` has made. Packages and settings
# there, PAM and name service included, are seen by no other process.
#
#   machine.sh install LAYERS PACKAGE...   install Debian packages into the layers, once
#   machine.sh run LAYERS CHANGES          be such a machine until standard input ends; changes are
#                                          kept in memory
set -eu

# layer NAME LOWER UPPER-AND-WORK
layer() {
    mkdir -p "$3/upper" "$3/work"
    mount -t overlay overlay -o "lowerdir=$2,upperdir=$3/upper,workdir=$3/work" "/$1"
}

# Names are resolved as before, also where that was a link into /run, or a mount of its own.
resolv=$(cat /etc/resolv.conf 2>/dev/null || true)

own_run() {
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p /run/lock
    rm -f /etc/resolv.conf
    echo "$resolv" >/etc/resolv.conf
}

install_packages() {
    layers=$1
    shift
    # Layers over another state of this machine's packages would lack what both together need.
    state="$* $(cksum </var/lib/dpkg/status)"
    if [ "$(cat "$layers/packages" 2>/dev/null)" = "$state" ]; then return; fi
    rm -rf "$layers"
    for name in usr etc var; do layer $name /$name "$layers/$name"; done
    own_run
    # Nothing is to be started.
    printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
    chmod 755 /usr/sbin/policy-rc.d
    export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get -q update
    apt-get -q -y install --no-install-recommends "$@"
    echo "$state" >"$layers/packages"
}

become() {
    mkdir -p "$2"
    mount -t tmpfs tmpfs "$2"
    for name in usr etc var; do layer $name "$1/$name/upper:/$name" "$2/$name"; done
    own_run
    printf '127.0.0.1 localhost ldap.example.com other.example.com\n' >/etc/hosts
    echo ready
    exec cat >/dev/null
}

case $1 in
    install) shift && install_packages "$@" ;;
    run) become "$2" "$3" ;;
esac
