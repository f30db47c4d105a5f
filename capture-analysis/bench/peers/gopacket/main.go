// SPDX-License-Identifier: GPL-2.0-only

// Reads a classic pcap file of Ethernet and IPv4 with gopacket into columns; connections are not
// told apart. Prints the number of TCP packets and the nanoseconds, reading included.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

const chunkPackets = 1 << 16

type row struct {
	timeNs                               int64
	frameBytes, payloadBytes             uint32
	seq, ack                             uint32
	tsValue, tsEcho, sackLeft, sackRight uint32
	window, ipID, flags                  uint16
}

func options(found *row, tcp *layers.TCP) {
	for _, option := range tcp.Options {
		switch {
		case option.OptionType == layers.TCPOptionKindTimestamps && len(option.OptionData) == 8:
			found.tsValue = binary.BigEndian.Uint32(option.OptionData)
			found.tsEcho = binary.BigEndian.Uint32(option.OptionData[4:])
		case option.OptionType == layers.TCPOptionKindSACK && len(option.OptionData) >= 8:
			found.sackLeft = binary.BigEndian.Uint32(option.OptionData)
			found.sackRight = binary.BigEndian.Uint32(option.OptionData[4:])
		}
	}
}

func main() {
	began := time.Now()
	file, err := os.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	reader, err := pcapgo.NewReader(bufio.NewReaderSize(file, 1<<20))
	if err != nil {
		panic(err)
	}
	var ethernet layers.Ethernet
	var ip layers.IPv4
	var tcp layers.TCP
	parser := gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &ethernet, &ip, &tcp)
	parser.IgnoreUnsupported = true
	decoded := make([]gopacket.LayerType, 0, 4)
	rows := make([]row, 0, chunkPackets)
	packets := 0
	for {
		octets, info, err := reader.ZeroCopyReadPacketData()
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(err)
		}
		// Of a packet that the capture cuts, the layers that are there.
		_ = parser.DecodeLayers(octets, &decoded)
		if len(decoded) < 3 || decoded[2] != layers.LayerTypeTCP {
			continue
		}
		found := row{
			timeNs:       info.Timestamp.UnixNano(),
			frameBytes:   uint32(info.Length),
			payloadBytes: uint32(ip.Length) - uint32(ip.IHL)*4 - uint32(tcp.DataOffset)*4,
			seq:          tcp.Seq,
			ack:          tcp.Ack,
			window:       tcp.Window,
			ipID:         ip.Id,
			flags:        uint16(tcp.Contents[12]&1)<<8 | uint16(tcp.Contents[13]),
		}
		options(&found, &tcp)
		rows = append(rows, found)
		packets++
		if len(rows) == chunkPackets {
			rows = rows[:0]
		}
	}
	fmt.Println(packets, time.Since(began).Nanoseconds())
}
