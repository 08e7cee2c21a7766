// pure
// Generated from tools/uapi/names.txt (inputs 4765e7c1c29f02a73f94143c1ef8d1f0); do not edit.

export const TIOCGPTN = 0x80045430
export const TIOCSPTLCK = 0x40045431
export const TIOCGPTPEER = 0x5441
export const TIOCSCTTY = 0x540e
export const TIOCNOTTY = 0x5422
export const TIOCGWINSZ = 0x5413
export const TIOCSWINSZ = 0x5414
export const TIOCSTI = 0x5412
export const TIOCLINUX = 0x541c
export const TIOCSPGRP = 0x5410
export const TIOCGPGRP = 0x540f
export const TIOCGSID = 0x5429
export const TIOCCONS = 0x541d
export const TIOCSETD = 0x5423
export const TCGETS = 0x5401
export const TCSETS = 0x5402
export const TCSETSW = 0x5403
export const TCSETSF = 0x5404
export const TCGETS2 = 0x802c542a
export const TCSETS2 = 0x402c542b
export const TIOCPKT = 0x5420
export const FIONREAD = 0x541b
export const FIONBIO = 0x5421
export const FIOCLEX = 0x5451
export const FIONCLEX = 0x5450
export const FIOASYNC = 0x5452
export const ECHO = 8
export const ICANON = 2
export const ISIG = 1
export const IEXTEN = 0x8000
export const IXON = 0x400
export const ICRNL = 0x100
export const INLCR = 64
export const IGNCR = 128
export const BRKINT = 2
export const INPCK = 16
export const ISTRIP = 32
export const OPOST = 1
export const ONLCR = 4
export const CS8 = 48
export const CSIZE = 48
export const PARENB = 0x100
export const VMIN = 6
export const VTIME = 5
export const KDSETMODE = 0x4b3a

/** Size and offsets of struct winsize. */
export const winsize = { size: 8, ws_row: 0, ws_col: 2, ws_xpixel: 4, ws_ypixel: 6 }
/** Size and offsets of struct termios. */
export const termios = { size: 36, c_iflag: 0, c_oflag: 4, c_cflag: 8, c_lflag: 12, c_line: 16, c_cc: 17 }
