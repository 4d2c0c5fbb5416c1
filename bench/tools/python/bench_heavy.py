"""
A tool that imports as long as one with a large library does, about 100 ms: much of what every
Debian python3 has.
"""

import asyncio
import concurrent.futures
import csv
import ctypes
import dataclasses
import decimal
import difflib
import email.mime.multipart
import ftplib
import html.parser
import http.cookiejar
import http.server
import imaplib
import json
import logging.config
import logging.handlers
import mailbox
import multiprocessing.managers
import optparse
import pdb
import pickletools
import plistlib
import pydoc
import smtplib
import sqlite3
import statistics
import tarfile
import unittest.mock
import urllib.request
import uuid
import wsgiref.simple_server
import xml.dom.minidom
import xml.etree.ElementTree
import xml.sax
import xmlrpc.client
import xmlrpc.server
import zipfile


def nothing() -> dict:
    return json.loads("{}")
