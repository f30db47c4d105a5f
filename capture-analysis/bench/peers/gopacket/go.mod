module peer

go 1.23

require github.com/gopacket/gopacket v1.3.1
