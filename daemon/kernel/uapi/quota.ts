// pure
// Generated from tools/uapi/names.txt (inputs 4765e7c1c29f02a73f94143c1ef8d1f0); do not edit.

export const Q_SYNC = 0x800001
export const Q_QUOTAON = 0x800002
export const Q_QUOTAOFF = 0x800003
export const Q_GETFMT = 0x800004
export const Q_GETINFO = 0x800005
export const Q_SETINFO = 0x800006
export const Q_GETQUOTA = 0x800007
export const Q_SETQUOTA = 0x800008
export const Q_GETNEXTQUOTA = 0x800009
export const Q_XQUOTAON = 0x5801
export const Q_XQUOTAOFF = 0x5802
export const Q_XGETQUOTA = 0x5803
export const Q_XSETQLIM = 0x5804
export const Q_XGETQSTAT = 0x5805
export const Q_XGETQSTATV = 0x5808
export const Q_XQUOTASYNC = 0x5807
export const Q_XGETNEXTQUOTA = 0x5809
export const USRQUOTA = 0
export const GRPQUOTA = 1
export const PRJQUOTA = 2
export const SUBCMDSHIFT = 8
export const SUBCMDMASK = 255
export const QIF_BLIMITS = 1
export const QIF_ILIMITS = 4
export const QIF_LIMITS = 5
export const QIF_SPACE = 2
export const QIF_INODES = 8
export const QIF_ALL = 63
export const FS_DQUOT_VERSION = 1
export const FS_PROJ_QUOTA = 2
export const FS_DQ_BSOFT = 4
export const FS_DQ_BHARD = 8
export const FS_DQ_ISOFT = 1
export const FS_DQ_IHARD = 2
export const FS_DQ_BCOUNT = 0x1000
export const FS_DQ_ICOUNT = 0x2000
export const FS_QUOTA_PDQ_ACCT = 16
export const FS_QUOTA_PDQ_ENFD = 32
export const FS_QSTATV_VERSION1 = 1
export const FS_IOC_GETFLAGS = 0x80086601
export const FS_IOC_SETFLAGS = 0x40086602
export const FS_IOC_GETFSUUID = 0x80111500
export const FS_IOC_FSGETXATTR = 0x801c581f
export const FS_IOC_FSSETXATTR = 0x401c5820
export const FS_IOC_FIEMAP = 0xc020660b
export const FICLONE = 0x40049409
export const FICLONERANGE = 0x4020940d
export const FIDEDUPERANGE = 0xc0189436
export const FITRIM = 0xc0185879
export const FIFREEZE = 0xc0045877
export const FITHAW = 0xc0045878
export const FS_XFLAG_PROJINHERIT = 0x200
export const FS_XFLAG_IMMUTABLE = 8
export const FS_XFLAG_APPEND = 16
export const FS_IMMUTABLE_FL = 16
export const FS_APPEND_FL = 32
export const FS_CASEFOLD_FL = 0x40000000
export const FS_PROJINHERIT_FL = 0x20000000
export const FS_VERITY_FL = 0x100000
export const FS_NOCOW_FL = 0x800000

/** Size and offsets of struct fsxattr. */
export const fsxattr = { size: 28, fsx_xflags: 0, fsx_extsize: 4, fsx_nextents: 8, fsx_projid: 12, fsx_cowextsize: 16 }
/** Size and offsets of struct if_dqblk. */
export const if_dqblk = { size: 72, dqb_bhardlimit: 0, dqb_bsoftlimit: 8, dqb_curspace: 16, dqb_ihardlimit: 24, dqb_isoftlimit: 32, dqb_curinodes: 40, dqb_btime: 48, dqb_itime: 56, dqb_valid: 64 }
/** Size and offsets of struct fs_disk_quota. */
export const fs_disk_quota = { size: 112, d_version: 0, d_flags: 1, d_fieldmask: 2, d_id: 4, d_blk_hardlimit: 8, d_blk_softlimit: 16, d_ino_hardlimit: 24, d_ino_softlimit: 32, d_bcount: 40, d_icount: 48, d_itimer: 56, d_btimer: 60, d_iwarns: 64, d_bwarns: 66 }
/** Size and offsets of struct fs_quota_statv. */
export const fs_quota_statv = { size: 160, qs_version: 0, qs_flags: 2, qs_incoredqs: 4 }
/** Size and offsets of struct file_clone_range. */
export const file_clone_range = { size: 32, src_fd: 0, src_offset: 8, src_length: 16, dest_offset: 24 }
