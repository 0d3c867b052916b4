"""The numbers of the wire that both ends must agree on and that are in no table of the schema.

``docs/protocol.md`` explains each of them. Timers are in ``link``: each end has its own.
"""

# The first byte of a payload: its direction, and whether it is a packet of a session.
CLEAR_TO_DEVICE = 0x01
CLEAR_TO_HOST = 0x02
SEALED_TO_DEVICE = 0x03
SEALED_TO_HOST = 0x04

# A sealed packet: direction, session, counter, seq, ack, sack, kind, message, flags, request id; body; MAC.
HEADER = "<BHIBBHBBBI"
HEADER_SIZE = 18
MAC_SIZE = 8
OVERHEAD = HEADER_SIZE + MAC_SIZE
MAX_COUNTER = 0xFFFFFFFF

# Kinds of sealed packet.
BARE = 0  # only an acknowledgement; has no sequence number, is never retransmitted
REQUEST = 1
ANSWER = 2
EVENT = 3
EVENT_ACK = 4
GAP = 5
CLOSE = 6  # the sender has ended the session; has no sequence number, is never retransmitted

RESOLVE = 0x01  # flag of a request: report what became of it, never execute it
EVENT_HEADER = "<IIIH"  # boot id, ticks, UTC seconds and milliseconds
EVENT_HEADER_SIZE = 14

# Sizes in bytes.
KEY_SIZE = 32
NONCE_SIZE = 16
PROOF_SIZE = 16

NO_HOST = bytes(8)  # the host id that no host may have
LAST_COMMAND = 0x7FFFFFFF  # the highest request id of a command; queries have the ids above
MAX_AHEAD = 4096  # a command's number is at most this far above the newest of its host

# Slots of keys.
DEVICE = 0  # proves sessions that may own the device
OBSERVERS = 1  # proves sessions that only observe
FIRST_PERSON = 2
SLOTS = 14
BY_SLOT_KEY = 1  # the scheme of an elevation that is proved by HMAC with the slot's key
BY_CERTIFICATE = 2  # the scheme of an elevation that is proved by a signature with a certificate's key
CERTIFICATE_ID = 16  # bytes of a certificate's id
