# One set of flags for every target: C++20, warnings are errors, the sanitizers a preset asks for, ccache and mold if present.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# A header that only declares tests would be rebuilt for nothing otherwise.
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)

# Line tables are enough for stack traces and halve the compile and link time of full debug info. Compiling takes most of a cold
# ./check: with AddressSanitizer and UndefinedBehaviorSanitizer -O1 costs twice the time of -O0 and saves seconds at run time.
# ThreadSanitizer keeps -O1: its tests are the slow ones, and some warnings need the optimizer.
if(WEIR_SANITIZE MATCHES "thread")
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
else()
  set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")

# Warnings are errors where the tests run. At -O2 g++ 12 invents some (std::variant, std::string), and a user's compiler may
# know others: neither may stop a release build.
if(WEIR_SANITIZE)
  set(warnings -Werror)
else()
  set(warnings -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds)
endif()
add_compile_options(-Wall -Wextra ${warnings} -Wno-missing-field-initializers -Wnon-virtual-dtor -Woverloaded-virtual
                    -fno-omit-frame-pointer "-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=")

if(WEIR_SANITIZE)
  add_compile_options(-fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WEIR_SANITIZE})
  # g++ 12 warns of "may be used uninitialized" inside std::optional and std::variant once it instruments them.
  add_compile_options(-Wno-maybe-uninitialized)
  if(WEIR_SANITIZE MATCHES "thread")
    add_compile_options(-Wno-tsan)
  endif()
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
