# Libraries from the distribution.
find_package(Threads REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(spdlog REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
if(TANDEM_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(NOT TARGET yaml-cpp::yaml-cpp)  # Debian 12's yaml-cpp 0.7 exports the plain name
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()
