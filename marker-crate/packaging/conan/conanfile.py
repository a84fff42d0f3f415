# The headers of ctrace for Conan 2: `conan create . --version VERSION`.
import os

from conan import ConanFile
from conan.tools.files import copy, get


class CtraceConan(ConanFile):
    name = "ctrace"
    description = "Markers for C and C++ that the profiler ctrace switches on from outside"
    license = ("MIT", "Apache-2.0")
    topics = ("profiler", "tracing", "ebpf", "usdt", "header-only")
    package_type = "header-library"
    no_copy_source = True

    def source(self):
        get(self, **self.conan_data["sources"][self.version], strip_root=True)

    def package(self):
        include = os.path.join(self.package_folder, "include")
        headers = os.path.join(self.source_folder, "include")
        copy(self, "LICENSE-*", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "ctrace.h", headers, include)
        copy(self, "ctrack*", headers, os.path.join(include, "ctrace"))

    def package_id(self):
        self.info.clear()

    def package_info(self):
        self.cpp_info.set_property("cmake_file_name", "ctrace")
        ctrace = self.cpp_info.components["ctrace"]
        ctrace.set_property("cmake_target_name", "ctrace::ctrace")
        ctrack = self.cpp_info.components["ctrack"]
        ctrack.set_property("cmake_target_name", "ctrace::ctrack")
        ctrack.includedirs = [os.path.join("include", "ctrace", "ctrack")]
        ctrack.requires = ["ctrace"]
        for component in ctrace, ctrack:
            component.bindirs = []
            component.libdirs = []
