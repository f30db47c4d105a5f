# ns ns2_fast.tcl LIBRARY FORWARD REVERSE RTT FROM STOP WAY:ALPHA...
# Ge et al.'s two nodes with hosts at 1 Gbit/s; prints what each flow's receiver acknowledged, packets/s.
# The defaults of the module's authors; each 1000 bytes have ns-2's header of 40.
lassign $argv library forward reverse rtt from stop
load $library Fast
foreach {name value} {
	cwnd_update_period_ 0.01 avgRTT_ 0 baseRTT_ 0 avg_cwnd_last_RTT_ 0 alpha_ 100 beta_ 100
	gamma_ 0.5 mi_threshold_ 0.00075 high_accuracy_cwnd_ 2
} { Agent/TCP/Fast set $name $value }
set ns [new Simulator]
foreach n {left l r right} { set $n [$ns node] }
set delay [expr {$rtt / 6.0}]ms
$ns duplex-link $left $l 1000Mb $delay DropTail
$ns simplex-link $l $r ${forward}Mb $delay DropTail
$ns simplex-link $r $l ${reverse}Mb $delay DropTail
$ns duplex-link $r $right 1000Mb $delay DropTail
foreach {a b} [list $left $l $l $left $l $r $r $l $r $right $right $r] { $ns queue-limit $a $b 100000 }
foreach flow [lrange $argv 6 end] {
	lassign [split $flow :] way alpha
	set sender [new Agent/TCP/Fast]
	foreach {name value} "window_ 100000 packetSize_ 1000 alpha_ $alpha beta_ $alpha" {
		$sender set $name $value
	}
	set receiver [new Agent/TCPSink/Sack1]
	lassign [expr {$way eq "f" ? [list $left $right] : [list $right $left]}] here there
	$ns attach-agent $here $sender
	$ns attach-agent $there $receiver
	$ns connect $sender $receiver
	set source [new Application/FTP]
	$source attach-agent $sender
	$ns at 0 "$source start"
	lappend senders $sender
}
proc acknowledged {} {
	global senders
	set found {}
	foreach sender $senders { lappend found [$sender set ack_] }
	return $found
}
$ns at $from { set before [acknowledged] }
$ns at $stop {
	foreach first $before last [acknowledged] { puts [expr {($last - $first) / double($stop - $from)}] }
	exit 0
}
$ns run
