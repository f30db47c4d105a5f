// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP fixed: a window that never changes
 *
 *	cwnd = W		always: no slow start, no reaction to loss or idleness
 *
 * There are no states. While there is data to send, W segments are in flight: Linux's
 * flight, in which a segment counts until it is acknowledged, reported as received or
 * taken for lost. With .cong_control the stack's own changes of the window (PRR, growth,
 * restart after idle) do not run; the retransmission timer's and an MTU probe's are put
 * back at once or with the next ACK.
 *
 * The fixed-window experiments of Zhang, Shenker and Clark (SIGCOMM '91, section
 * 4.1) and of Kalampoukas, Varma and Ramakrishnan (1998, section 5) separate the
 * effects of two-way traffic from those of congestion control by holding the
 * windows constant. This module is that, on today's stack.
 *
 * Each window is a congestion control of its own, so that a flow gets its window
 * from anything that can name a congestion control (TCP_CONGESTION, the route
 * attribute congctl, iperf3 -C), two flows of one kernel may differ, and ss -ti
 * shows which is which:
 *
 *	modprobe tcp_fixed windows=30,25	registers "fixed30" and "fixed25"
 *
 * How this differs from a simulator's fixed window:
 *
 * - Loss recovery is Linux's own (SACK or NewReno marking, RACK, the retransmission
 *   timer), within the window W. Only the reaction of the window to loss is gone. After a
 *   timeout the stack sends one segment and awaits its ACK before it uses the window.
 * - What is in flight reaches from snd_una over more than W segments while there are
 *   holes: a window in BSD's sense would stall. The peer's receive window bounds it still.
 * - Only SO_MAX_PACING_RATE paces the sender. Whether a burst is one large buffer is the
 *   interface's choice; the papers' packets need `ip link set ... gso_max_segs 1`, and gro
 *   off.
 * - The window is all there is to set: snd_cwnd_clamp, and so the route's cwnd, does not
 *   bound it.
 *
 * As it does not answer to loss, only a process with CAP_NET_ADMIN in the socket's network
 * namespace may choose it; tcp_allowed_congestion_control can allow it to everybody.
 *
 * The only state is the window, which belongs to the congestion control, not to the socket.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <net/tcp.h>

#include "compat/tcp.h"
#include "variants.h"

#define FIXED_MAX_VARIANTS 32
/* A window of 1..65535 segments: "fixed65535" fits TCP_CA_NAME_MAX (16). */
#define FIXED_MAX_WINDOW 65535U

static unsigned int windows[FIXED_MAX_VARIANTS] = { 10 };
static int windows_count = 1;
module_param_array(windows, uint, &windows_count, 0444);
MODULE_PARM_DESC(windows, "windows to register, in segments (1..65535): 30,25 makes fixed30 and fixed25");

/* The value of each is its window in segments. */
static struct variant *variants;

static void fixed_init(struct sock *sk)
{
	tcp_snd_cwnd_set(tcp_sk(sk), variant_value(sk));
	/* Not paced unless the socket asks: the ACK clock is what is being studied. */
	WRITE_ONCE(sk->sk_pacing_rate, READ_ONCE(sk->sk_max_pacing_rate));
}

static void fixed_cong_control(TWOWAY_CONG_CONTROL_ARGS(sk, rs))
{
	tcp_snd_cwnd_set(tcp_sk(sk), variant_value(sk));
}

/* The retransmission timer cuts the window to one just before it says so here. */
static void fixed_set_state(struct sock *sk, u8 state)
{
	tcp_snd_cwnd_set(tcp_sk(sk), variant_value(sk));
}

/* Keeps tcp_enter_loss() and tcp_enter_cwr() from recording a lower threshold. */
static u32 fixed_ssthresh(struct sock *sk)
{
	return variant_value(sk);
}

static u32 fixed_undo_cwnd(struct sock *sk)
{
	return variant_value(sk);
}

/*
 * Restricted, without TCP_CONG_NON_RESTRICTED: a sender that does not answer to loss takes what it
 * likes from all others, so that choosing it takes CAP_NET_ADMIN.
 */
static const struct tcp_congestion_ops fixed_ops = {
	.init		= fixed_init,
	.set_state	= fixed_set_state,
	.cong_control	= fixed_cong_control,
	.ssthresh	= fixed_ssthresh,
	.undo_cwnd	= fixed_undo_cwnd,
	.owner		= THIS_MODULE,
};

static int __init fixed_register(void)
{
	int i, err;

	err = variants_check("windows", "segments", windows, windows_count, FIXED_MAX_WINDOW);
	if (err)
		return err;

	variants = kcalloc(windows_count, sizeof(*variants), GFP_KERNEL);
	if (!variants)
		return -ENOMEM;

	for (i = 0; i < windows_count; i++) {
		variants[i].ops = fixed_ops;
		variants[i].value = windows[i];
		snprintf(variants[i].ops.name, TCP_CA_NAME_MAX, "fixed%u", windows[i]);
	}
	err = variants_register(variants, &windows_count);
	if (err)
		kfree(variants);
	return err;
}

static void __exit fixed_unregister(void)
{
	variants_unregister(variants, windows_count);
	kfree(variants);
}

module_init(fixed_register);
module_exit(fixed_unregister);

MODULE_AUTHOR("the twoway authors");
MODULE_DESCRIPTION("TCP congestion control with a fixed window");
MODULE_LICENSE("GPL");
