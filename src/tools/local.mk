# What src/tools adds to the build.
bin_PROGRAMS += rwk_info
rwk_info_SOURCES = src/tools/rwk_info.c
rwk_info_LDADD = libropewalk-core.la
dist_man_MANS += contrib/man/rwk_info.1

# On ropewalk.h alone, as any other program.
bin_PROGRAMS += rwk_pingpong
rwk_pingpong_SOURCES = src/tools/rwk_pingpong.c
rwk_pingpong_LDADD = libropewalk.la
dist_man_MANS += contrib/man/rwk_pingpong.1
