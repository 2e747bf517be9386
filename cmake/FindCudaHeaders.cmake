# Finds the folder that holds both cuda.h and nvrtc.h, new enough, and defines CudaHeaders::CudaHeaders.
# Nothing is cached: a toolkit that comes or goes between two runs is noticed.
#
# Order: JITSMITH_CUDA_INCLUDE_DIR, CUDA_HOME, CUDA_PATH, /usr/local/cuda, the folders of the wheels nvidia-cuda-runtime
# and nvidia-cuda-nvrtc in $VIRTUAL_ENV and in this project's .venv, the system's own.

set(_candidates "")
if(JITSMITH_CUDA_INCLUDE_DIR)
  set(_candidates "${JITSMITH_CUDA_INCLUDE_DIR}")
else()
  foreach(_root IN ITEMS "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda)
    if(_root)
      list(APPEND _candidates "${_root}/include")
    endif()
  endforeach()
  foreach(_venv IN ITEMS "$ENV{VIRTUAL_ENV}" "${PROJECT_SOURCE_DIR}/.venv")
    if(_venv)
      file(GLOB _wheels "${_venv}/lib/python3*/site-packages/nvidia/cu1[3-9]/include")
      list(APPEND _candidates ${_wheels})
    endif()
  endforeach()
  list(APPEND _candidates /usr/include)
endif()

set(CudaHeaders_INCLUDE_DIR "")
set(CudaHeaders_VERSION "")
foreach(_dir IN LISTS _candidates)
  if(NOT EXISTS "${_dir}/cuda.h" OR NOT EXISTS "${_dir}/nvrtc.h")
    continue()
  endif()
  file(STRINGS "${_dir}/cuda.h" _line REGEX "^#define CUDA_VERSION [0-9]+" LIMIT_COUNT 1)
  string(REGEX MATCH "[0-9]+" _number "${_line}")
  math(EXPR _major "0${_number} / 1000")
  math(EXPR _minor "0${_number} % 1000 / 10")
  set(CudaHeaders_VERSION "${_major}.${_minor}")
  set(CudaHeaders_INCLUDE_DIR "${_dir}")
  if(CudaHeaders_VERSION VERSION_GREATER_EQUAL CudaHeaders_FIND_VERSION)
    break()
  endif()
endforeach()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  CudaHeaders REQUIRED_VARS CudaHeaders_INCLUDE_DIR VERSION_VAR CudaHeaders_VERSION
  REASON_FAILURE_MESSAGE "cuda.h and nvrtc.h come with the CUDA toolkit, or with the Python packages nvidia-cuda-runtime \
and nvidia-cuda-nvrtc. './run setup' installs these. -DJITSMITH_CUDA_INCLUDE_DIR=... names another folder.")

if(CudaHeaders_FOUND AND NOT TARGET CudaHeaders::CudaHeaders)
  add_library(CudaHeaders::CudaHeaders INTERFACE IMPORTED)
  target_include_directories(CudaHeaders::CudaHeaders SYSTEM INTERFACE "${CudaHeaders_INCLUDE_DIR}")
endif()
