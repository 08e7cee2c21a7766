// pure
// Generated from tools/uapi/names.txt (inputs 4765e7c1c29f02a73f94143c1ef8d1f0); do not edit.

const ARM64 = process.arch === 'arm64'

export const AF_UNIX = 1
export const AF_INET = 2
export const AF_INET6 = 10
export const AF_NETLINK = 16
export const AF_PACKET = 17
export const AF_VSOCK = 40
export const SOCK_STREAM = 1
export const SOCK_DGRAM = 2
export const SOCK_RAW = 3
export const SOCK_SEQPACKET = 5
export const SOCK_CLOEXEC = 0x80000
export const SOCK_NONBLOCK = 0x800
export const IPPROTO_TCP = 6
export const IPPROTO_UDP = 17
export const IPPROTO_IP = 0
export const IPPROTO_IPV6 = 41
export const IPPROTO_MPTCP = 0x106
export const IPPROTO_SCTP = 132
export const IPPROTO_ICMP = 1
export const SOL_SOCKET = 1
export const SO_REUSEADDR = 2
export const SO_REUSEPORT = 15
export const SO_PEERCRED = 17
export const SO_PEERPIDFD = 77
export const SO_PASSRIGHTS = 83
export const SO_PASSCRED = 16
export const SO_MARK = 36
export const SO_ORIGINAL_DST = 80
export const SO_RCVBUF = 8
export const SO_SNDBUF = 7
export const SO_ERROR = 4
export const SO_ACCEPTCONN = 30
export const SO_DOMAIN = 39
export const SO_TYPE = 3
export const SO_PROTOCOL = 38
export const SO_RCVTIMEO = 20
export const SO_SNDTIMEO = 21
export const SO_PEERGROUPS = 59
export const SO_PEERSEC = 31
export const IPV6_V6ONLY = 26
export const IPV6_TRANSPARENT = 75
export const IP_TRANSPARENT = 19
export const IP_FREEBIND = 15
export const IP_RECVORIGDSTADDR = 20
export const IP_PKTINFO = 8
export const IPV6_RECVPKTINFO = 49
export const TCP_NODELAY = 1
export const TCP_FASTOPEN = 23
export const SOMAXCONN = 0x1000
export const SCM_RIGHTS = 1
export const SCM_CREDENTIALS = 2
export const MSG_CMSG_CLOEXEC = 0x40000000
export const MSG_DONTWAIT = 64
export const MSG_NOSIGNAL = 0x4000
export const MSG_TRUNC = 32
export const MSG_PEEK = 2
export const SHUT_RD = 0
export const SHUT_WR = 1
export const SHUT_RDWR = 2
export const NETLINK_ROUTE = 0
export const NETLINK_NETFILTER = 12
export const NETLINK_AUDIT = 9
export const NLM_F_REQUEST = 1
export const NLM_F_ACK = 4
export const NLM_F_ROOT = 0x100
export const NLM_F_MATCH = 0x200
export const NLM_F_DUMP = 0x300
export const NLM_F_CREATE = 0x400
export const NLM_F_EXCL = 0x200
export const NLM_F_REPLACE = 0x100
export const NLM_F_MULTI = 2
export const NLMSG_ERROR = 2
export const NLMSG_DONE = 3
export const NLMSG_NOOP = 1
export const NETLINK_EXT_ACK = 11
export const SOL_NETLINK = 0x10e
export const NLMSGERR_ATTR_MSG = 1
export const RTM_NEWLINK = 16
export const RTM_DELLINK = 17
export const RTM_GETLINK = 18
export const RTM_SETLINK = 19
export const RTM_NEWADDR = 20
export const RTM_GETADDR = 22
export const RTM_NEWROUTE = 24
export const RTM_GETROUTE = 26
export const RTM_DELROUTE = 25
export const RTN_LOCAL = 2
export const RTN_UNICAST = 1
export const RTN_UNREACHABLE = 7
export const RTPROT_STATIC = 4
export const RTPROT_BOOT = 3
export const RT_SCOPE_HOST = 254
export const RT_SCOPE_UNIVERSE = 0
export const RT_TABLE_MAIN = 254
export const RT_TABLE_LOCAL = 255
export const RTA_DST = 1
export const RTA_OIF = 4
export const RTA_GATEWAY = 5
export const RTA_PREFSRC = 7
export const RTA_TABLE = 15
export const RTA_PRIORITY = 6
export const IFA_ADDRESS = 1
export const IFA_LOCAL = 2
export const IFLA_IFNAME = 3
export const IFLA_MTU = 4
export const IFLA_STATS64 = 23
export const IFF_UP = 1
export const IFF_LOOPBACK = 8
export const IFF_RUNNING = 64
export const SIOCGIFFLAGS = 0x8913
export const SIOCSIFFLAGS = 0x8914
export const SIOCGIFINDEX = 0x8933
export const SIOCATMARK = 0x8905
export const VMADDR_CID_ANY = 0xffffffff
export const NFULNL_COPY_PACKET = 2
export const EPOLLIN = 1
export const EPOLLOUT = 4
export const EPOLLHUP = 16
export const EPOLLERR = 8
export const EPOLL_CTL_ADD = 1
export const EPOLL_CTL_DEL = 2
export const EPOLL_CLOEXEC = 0x80000

/** Size and offsets of struct sockaddr_in. */
export const sockaddr_in = { size: 16, sin_family: 0, sin_port: 2, sin_addr: 4 }
/** Size and offsets of struct sockaddr_in6. */
export const sockaddr_in6 = { size: 28, sin6_family: 0, sin6_port: 2, sin6_flowinfo: 4, sin6_addr: 8, sin6_scope_id: 24 }
/** Size and offsets of struct ucred. */
export const ucred = { size: 12, pid: 0, uid: 4, gid: 8 }
/** Size and offsets of struct nlmsghdr. */
export const nlmsghdr = { size: 16, nlmsg_len: 0, nlmsg_type: 4, nlmsg_flags: 6, nlmsg_seq: 8, nlmsg_pid: 12 }
/** Size and offsets of struct sockaddr_nl. */
export const sockaddr_nl = { size: 12, nl_family: 0, nl_pid: 4, nl_groups: 8 }
/** Size and offsets of struct ifinfomsg. */
export const ifinfomsg = { size: 16, ifi_family: 0, ifi_type: 2, ifi_index: 4, ifi_flags: 8, ifi_change: 12 }
/** Size and offsets of struct ifaddrmsg. */
export const ifaddrmsg = { size: 8, ifa_family: 0, ifa_prefixlen: 1, ifa_flags: 2, ifa_scope: 3, ifa_index: 4 }
/** Size and offsets of struct rtmsg. */
export const rtmsg = { size: 12, rtm_family: 0, rtm_dst_len: 1, rtm_src_len: 2, rtm_tos: 3, rtm_table: 4, rtm_protocol: 5, rtm_scope: 6, rtm_type: 7, rtm_flags: 8 }
/** Size and offsets of struct rtattr. */
export const rtattr = { size: 4, rta_len: 0, rta_type: 2 }
/** Size and offsets of struct nlmsgerr. */
export const nlmsgerr = { size: 20, error: 0, msg: 4 }
/** Size and offsets of struct ifreq. */
export const ifreq = { size: 40, ifr_ifrn: 0, ifr_ifru: 16 }
/** Size and offsets of struct msghdr. */
export const msghdr = { size: 56, msg_name: 0, msg_namelen: 8, msg_iov: 16, msg_iovlen: 24, msg_control: 32, msg_controllen: 40, msg_flags: 48 }
/** Size and offsets of struct cmsghdr. */
export const cmsghdr = { size: 16, cmsg_len: 0, cmsg_level: 8, cmsg_type: 12 }
/** Size and offsets of struct iovec. */
export const iovec = { size: 16, iov_base: 0, iov_len: 8 }
/** Size and offsets of struct epoll_event. */
export const epoll_event = { size: ARM64 ? 16 : 12, events: 0, data: ARM64 ? 8 : 4 }
