#!/usr/bin/busybox sh
# The first process of a guest: reads commands from the port `agent`, runs each by itself, and answers there. In QEMU
# it is a virtio-serial port; in User-Mode Linux the kernel's command line names a serial line, and a folder of the host
# that is to be seen at /run/host.
# A command is a line `NUMBER BASE64`, the answer to it `NUMBER STATUS =OUTPUT =ERRORS`, both in base64.
export PATH=/usr/bin:/usr/sbin HOME=/root
# Programs that are there stay.
/usr/bin/busybox --install -s /usr/bin 2>/install.log
ln -s ../bin/busybox /usr/sbin/modprobe
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
mount -t tmpfs tmp /tmp
chmod 1777 /tmp /dev/shm
mount -t debugfs debug /sys/kernel/debug
ip link set lo up
if [ "$agent" ]; then
    mkdir /run/host
    mount -t hostfs -o "$host" host /run/host
    exec 3<>"/dev/$agent"
    stty raw -echo <&3
else
    modprobe -a virtio_pci virtio_console
    until port=$(grep -lx agent /sys/class/virtio-ports/*/name); do usleep 10000; done 2>/run/log
    port=${port%/name}
    exec 3<>"/dev/${port##*/}"
fi
mkdir /run/jobs
mkfifo /run/done
# Answers one at a time, whole.
{
    exec 4<>/run/done
    while read -r job <&4; do
        cat "$job.answer" >&3
        rm "$job".*
    done
} &
# The host may have gone already, which a writer waits for.
timeout 180 sh -c 'echo ready >&3' || poweroff -f
while read -r number command <&3; do
    job=/run/jobs/$number
    echo "$command" | base64 -d >"$job.sh"
    {
        sh "$job.sh" >"$job.out" 2>"$job.err" 3<&- </dev/null
        echo "$number $? =$(base64 "$job.out" | tr -d '\n') =$(base64 "$job.err" | tr -d '\n')" >"$job.answer"
        echo "$job" >/run/done
    } &
done
# The host's side has gone.
poweroff -f
