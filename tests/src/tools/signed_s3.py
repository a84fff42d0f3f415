"""A server of S3 that checks signatures and rights: moto, with one user. Prints the user's key."""

import json
import os
import sys
import threading
import time
from urllib.parse import quote

# So many requests of the set-up need no signature.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "4"

import boto3
import moto.iam.access_control as access
from moto.server import main

check = access.IAMRequestBase.check_signature


def check_signature(request):
    try:
        check(request)
    except Exception:
        # Some versions sign the decoded path, so that no client can use a name with `=`.
        path, mark, query = request._path.partition("?")
        request._path = quote(path, safe="/-_.~") + mark + query
        check(request)


access.IAMRequestBase.check_signature = check_signature


def set_up(port):
    nobody = {
        "endpoint_url": f"http://127.0.0.1:{port}",
        "region_name": "us-east-1",
        "aws_access_key_id": "x",
        "aws_secret_access_key": "x",
    }
    iam = boto3.client("iam", **nobody)
    iam.create_user(UserName="daemon")
    statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    iam.put_user_policy(UserName="daemon", PolicyName="p", PolicyDocument=json.dumps(policy))
    key = iam.create_access_key(UserName="daemon")["AccessKey"]
    boto3.client("s3", **nobody).create_bucket(Bucket=sys.argv[2])
    sys.__stdout__.write(f"{key['AccessKeyId']} {key['SecretAccessKey']}\n")
    sys.__stdout__.flush()


def wait_and_set_up(port):
    import socket

    while True:
        try:
            socket.create_connection(("127.0.0.1", int(port))).close()
            break
        except OSError:
            time.sleep(0.1)
    set_up(port)


threading.Thread(target=wait_and_set_up, args=(sys.argv[1],), daemon=True).start()
# It tells its address on standard output.
sys.stdout = sys.stderr
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
