#include "kernel.h"
#define KBUILD_MODNAME "net"
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/sock.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include <net/pkt_sched.h>
#undef KBUILD_MODNAME
